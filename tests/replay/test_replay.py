# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""`weightfs replay` against an independent simulator, on generated and on real traces."""

import gzip
import json
import os
import pathlib
import random
import resource
import subprocess

import pytest

import simulator
import traces

BUILD = pathlib.Path(os.environ.get("WEIGHTFS_BUILD") or traces.ROOT / "build")
RATES = ("object_hit_rate", "byte_hit_rate", "repeated_job_hit_rate")
GENTD26 = "gentd26_model_requests.csv.gz"
DLRM = "dlrm2025_instance_creations.csv.gz"


def run(trace, *options):
    return subprocess.run([BUILD / "weightfs", "replay", trace, *map(str, options)],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def replay(trace, *options):
    """Policy: its row."""
    done = run(trace, "--json", *options)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(answer) == {"capacity", "policies"}
    for row in answer["policies"]:
        assert set(row) == {"policy", *RATES, "pulled_bytes", "evictions"}
    return {row.pop("policy"): row for row in answer["policies"]}


def simulated(references, capacity, probation):
    runs = {"second-reference": simulator.second_reference(references, capacity, probation),
            "lru": simulator.lru(references, capacity),
            "fifo": simulator.fifo(references, capacity),
            "lookahead": simulator.lookahead(references, capacity),
            "belady": simulator.belady(references, capacity)}
    return {name: simulator.result(steps, references) for name, steps in runs.items()}


def assert_same(ours, theirs):
    assert set(ours) == set(theirs)
    for policy in theirs:
        assert ours[policy] == pytest.approx(theirs[policy], abs=1e-9), policy


def of_one_size(references):
    return [reference._replace(size=1) for reference in references]


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    references = traces.zipf(12_000, 300)
    path = tmp_path_factory.mktemp("zipf") / "zipf.csv"
    return traces.write_csv(path, references), references


@pytest.mark.parametrize("capacity", [1, 3, 25, 100])
def test_generated_trace_of_one_size_as_the_simulator(generated, capacity):
    trace, references = generated
    assert_same(replay(trace, "--capacity", capacity),
                simulated(of_one_size(references), capacity, max(1, capacity // 5)))


@pytest.mark.parametrize("capacity", [50_000, 400_000, 3_000_000])
def test_generated_trace_with_sizes_as_the_simulator(generated, capacity):
    trace, references = generated
    assert_same(replay(trace, "--capacity", f"{capacity}B"),
                simulated(references, capacity, capacity // 5))


def test_lru_of_independent_references_is_what_theory_says(tmp_path):
    trace = traces.write_csv(tmp_path / "t.csv", traces.zipf(200_000, 1000))
    weights = traces.zipf_weights(1000)
    for capacity in (50, 200):
        rate = replay(trace, "--capacity", capacity, "--policy", "lru")["lru"]["object_hit_rate"]
        assert rate == pytest.approx(simulator.che_hit_rate(weights, capacity), abs=0.01)


def test_every_format_says_the_same(generated, tmp_path):
    trace, references = generated
    expected = replay(trace, "--capacity", "400kB")
    events = traces.write_events(tmp_path / "events", references)
    assert replay(events, "--capacity", "400kB") == expected
    for path in (trace, events):
        assert replay(traces.compress(path), "--capacity", "400kB") == expected

    # This one has no consumers, on which only two figures depend.
    oracle = replay(traces.write_oracle(tmp_path / "oracle", references), "--capacity", "400kB")
    assert set(oracle) == set(expected)
    for policy in ("lru", "fifo", "lookahead", "belady"):
        for figure in ("object_hit_rate", "byte_hit_rate", "pulled_bytes", "evictions"):
            assert oracle[policy][figure] == expected[policy][figure]


def test_damaged_file_is_an_error_and_not_a_shorter_trace(generated, tmp_path):
    whole = traces.compress(generated[0]).read_bytes()
    for content, reason in ((whole[:-2000], "cut off"),
                            (whole[:3000] + bytes(100) + whole[3100:], "wrong")):
        (tmp_path / "t.gz").write_bytes(content)
        done = run(tmp_path / "t.gz", "--capacity", 8)
        assert done.returncode == 1 and not done.stdout
        assert "t.gz" in done.stderr and reason in done.stderr
    done = run(tmp_path, "--capacity", 8)
    assert done.returncode == 1 and str(tmp_path) in done.stderr


GARBAGE = {
    "random bytes": (random.Random(1).randbytes(300_000), None),
    "random lines": (b"artifact,size\n" + random.Random(2).randbytes(300_000), None),
    "random records": (bytes(16) + random.Random(3).randbytes(300_001), 0),
    "half an event": (b'{"event": "reference", "snap', "no reference that could be read"),
    "empty": (b"", "no reference that could be read"),
    "a header alone": (b"time,artifact\n", "no reference that could be read"),
    "one line of 10 MB": (b"x" * 10_000_000, "line 1 is longer"),
    "a row of 10 MB": (b"time,artifact\n" + b"x" * 10_000_000, "line 2 is longer"),
    "a long header": (b"x," * 400_000 + b"\n1\n", "which column is the artifact"),
    "the beginning of gzip": (b"\x1f\x8b", "cut off"),
    "gzip of nothing": (gzip.compress(b""), "no reference that could be read"),
    "gzip of noise": (gzip.compress(random.Random(4).randbytes(100_000)), None),
}


@pytest.mark.parametrize("name", GARBAGE)
@pytest.mark.parametrize("capacity", ["8", "10GB"])
def test_garbage_is_told_in_few_words_and_never_a_crash(tmp_path, name, capacity):
    """The reason, 0 where something can be made of it, None where either is right."""
    content, reason = GARBAGE[name]
    (tmp_path / "garbage").write_bytes(content)
    done = run(tmp_path / "garbage", "--capacity", capacity)
    assert done.returncode in ((0, 1) if reason is None else (0,) if reason == 0 else (1,)), done.stderr
    assert len(done.stderr) < 3000
    if done.returncode == 1:
        assert not done.stdout and f"{tmp_path}/garbage: " in done.stderr and (reason or "") in done.stderr


@pytest.mark.parametrize("path, reason", [("/dev/null", "no reference that could be read"), ("/", "directory")])
def test_what_is_no_file_is_told(path, reason):
    done = run(path, "--capacity", "8")
    assert done.returncode == 1 and not done.stdout and reason in done.stderr


def test_absurd_numbers_are_rows_that_do_not_parse(tmp_path):
    right = ["0,u,a,10", "1,u,b,0", "2,v,a,10", f"3,u,big,{1 << 60}"]
    wrong = ["1e400,u,a,1", "nan,u,a,1", "inf,u,a,1", "-1e300,u,a,1", "4,u,a,-5", "4,u,a,1e308", "4,u,a,nan",
             f"4,u,{'x' * 100_000},never", "4,u,a,18446744073709551615", "4,u,a,99999999999999999999999999", "4,u,,1", "4,u", ",,,"]
    (tmp_path / "t.csv").write_text("\n".join(["time,user,artifact,size", *right, *wrong]) + "\n")
    done = run(tmp_path / "t.csv", "--json", "--capacity", "1GB", "--policy", "lru")
    assert done.returncode == 0 and f"{len(wrong)} rows do not parse" in done.stderr
    assert len(done.stderr) < 3000
    lru = json.loads(done.stdout)["policies"][0]
    assert lru["pulled_bytes"] == 10 + (1 << 60) and lru["object_hit_rate"] == 1 / 4
    # Each could be, but not their sum.
    (tmp_path / "t.csv").write_text("artifact,size\n" + f"a,{1 << 60}\n" * 17)
    done = run(tmp_path / "t.csv", "--capacity", "1GB", "--policy", "lru")
    assert done.returncode == 0 and "2 rows do not parse" in done.stderr and "cannot be" in done.stderr


def test_a_million_references_take_under_five_seconds(tmp_path):
    options = json.loads((BUILD / "meson-info" / "intro-buildoptions.json").read_text())
    values = {option["name"]: option["value"] for option in options}
    if values["optimization"] in ("0", "g", "plain") or values["b_sanitize"] != "none":
        pytest.skip("this build is not optimised")
    trace = traces.write_csv(tmp_path / "t.csv", traces.zipf(1_000_000, 100_000, 10_000))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    policies = replay(trace, "--capacity", 2000)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert len(policies) == 5
    # Its own time, as others may use the machine: of reading the trace and of five policies.
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 5


def gentd26():
    return [traces.Reference(row["artifact"], row["user"], 1)
            for row in traces.rows(traces.real(GENTD26))]


@pytest.mark.parametrize("capacity", [4, 8, 12])
def test_gentd26_as_the_simulator(capacity):
    assert_same(replay(traces.real(GENTD26), "--capacity", capacity),
                simulated(gentd26(), capacity, max(1, capacity // 5)))


def test_gentd26_as_others_found_it():
    at = {capacity: replay(traces.real(GENTD26), "--capacity", capacity) for capacity in (4, 8, 12)}
    percent = {(capacity, policy): row["object_hit_rate"] * 100
               for capacity, rows in at.items() for policy, row in rows.items()}
    assert percent[8, "lru"] == pytest.approx(85.3, abs=0.1)
    assert percent[12, "lru"] == pytest.approx(92.0, abs=0.1)
    assert percent[8, "belady"] == pytest.approx(91.9, abs=0.1)
    assert percent[12, "belady"] == pytest.approx(95.7, abs=0.1)
    assert percent[4, "lru"] == pytest.approx(66.1, abs=0.1)
    assert percent[4, "lookahead"] >= 77
    assert at[8]["lru"]["repeated_job_hit_rate"] == pytest.approx(0.933, abs=0.001)
    assert at[8]["second-reference"]["repeated_job_hit_rate"] >= 0.90


@pytest.mark.parametrize("capacity", ["5TB", "20TB"])
def test_dlrm_with_sizes_as_the_simulator(capacity):
    size = int(capacity[:-2]) * 10 ** 12
    # The trace has no consumers. Every instance is one of its own to admission; a repeated job is one
    # whose artifact was there before, as if they were all the same.
    references = [traces.Reference(row["artifact"], place, int(float(row["disk_gib"]) * 2 ** 30))
                  for place, row in enumerate(traces.rows(traces.real(DLRM)))]
    theirs = simulated(references, size, size // 5)
    nobody = [reference._replace(consumer=None) for reference in references]
    again = {"second-reference": simulator.second_reference(references, size, size // 5)}
    for policy in ("lru", "fifo", "lookahead", "belady"):
        again[policy] = getattr(simulator, policy)(references, size)
    for policy, steps in again.items():
        repeated = simulator.result(steps, nobody)["repeated_job_hit_rate"]
        theirs[policy]["repeated_job_hit_rate"] = repeated
    assert_same(replay(traces.real(DLRM), "--capacity", capacity, "--size", "disk_gib:GiB"), theirs)
