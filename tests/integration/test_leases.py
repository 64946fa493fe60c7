# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Leases and pins with an end: what is there when a job begins, and stays until it is over."""

import concurrent.futures
import datetime
import http.client
import json
import math
import os
import subprocess
import threading
import time

import pytest

import daemon
import models
from api import ask
from paced_origin import PacedOrigin
from waiting import until

MB = 1 << 20
SHARDS, SHARD = 2, 16 * MB        # of each model: 32 MB and a few small files
MODELS = 6


@pytest.fixture(scope="session")
def jobs(work):
    """Models, each in a folder of its own below one root: {name: Model}."""
    root = work / "jobs"
    root.mkdir()
    made = {}
    for number in range(MODELS):
        folder = root / f"m{number}"
        models.write_model(folder, SHARDS, SHARD, seed=300 + number)
        made[f"org/m{number}"] = models.describe(folder)
    return made


@pytest.fixture
def node(weightfs, origin, jobs, work):
    """A mount of all of them. `rate` is the origin's, bytes per second and connection."""
    def make(rate=None, **config):
        source = origin(root=work / "jobs", rate=rate)
        mounted = weightfs({name: source.url(f"{name.removeprefix('org/')}/") for name in jobs},
                           config={"admission": "always", "part_size": "1MiB"} | config)
        mounted.origin = source
        return mounted
    return make


def stamp(seconds):
    """A time as of RFC 3339, whole seconds."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def take(mounted, lease, artifacts, begin=None, end=None, **more):
    begin = time.time() if begin is None else begin
    body = {"artifacts": artifacts, "not_before": stamp(begin),
            "until": stamp(begin + 600 if end is None else end)} | more
    return ask(mounted.socket, "PUT", f"/v1/leases/{lease}", body)


def leases(mounted):
    """{id: lease} of those that hold now."""
    status, answer = ask(mounted.socket, "GET", "/v1/leases")
    assert status == 200
    return {lease["id"]: lease for lease in answer["leases"]}


def complete(mounted, lease, seconds=60):
    until(lambda: leases(mounted)[lease]["complete"], seconds, f"lease {lease} is complete")


class PlainClient:
    """Fetches models one after the other, as simply as can be, with so many connections; `times` are the
    seconds from the begin of the block to when each was there. Use as a context."""

    def __init__(self, origin, files, connections, part):
        self.origin, self.connections = origin, connections
        self.parts = [[(path, begin, min(begin + part, size)) for path, size in model for begin in range(0, size, part)]
                      for model in files]
        self.times = []
        self._threads = concurrent.futures.ThreadPoolExecutor(1)

    def __enter__(self):
        self._running = self._threads.submit(self._run, time.monotonic())
        return self

    def __exit__(self, *_):
        self._threads.shutdown()

    def _run(self, begin):
        left = [(number, part) for number, model in enumerate(self.parts) for part in model]
        missing = [len(model) for model in self.parts]
        lock = threading.Lock()

        def fetch():
            connection = http.client.HTTPConnection("127.0.0.1", self.origin.port, timeout=60)
            while True:
                with lock:
                    if not left:
                        return connection.close()
                    number, (path, first, end) = left.pop(0)
                connection.request("GET", "/" + path, headers={"Range": f"bytes={first}-{end - 1}"})
                assert len(connection.getresponse().read()) == end - first
                with lock:
                    missing[number] -= 1
                    if missing[number] == 0:
                        self.times.append(time.monotonic() - begin)
        with concurrent.futures.ThreadPoolExecutor(self.connections) as threads:
            for thread in [threads.submit(fetch) for _ in range(self.connections)]:
                thread.result()

    def result(self):
        self._running.result(300)
        return self.times


def test_competing_leases_are_complete_in_time_the_earliest_due_first(weightfs, jobs, work, folder):
    # A part takes an eighth of a second: so long a connection may be taken when something more urgent comes.
    rate, connections, part = 1_000_000, 4, 128 << 10
    with PacedOrigin(work / "jobs", folder / "ours", rate) as source, \
            PacedOrigin(work / "jobs", folder / "other", rate) as other:
        mounted = weightfs({name: source.url(f"{name.removeprefix('org/')}/") for name in jobs},
                           config={"admission": "always", "part_size": str(part), "connections": connections,
                                   "connections_per_blob": 2})
        files = {name: [(f"{name.removeprefix('org/')}/{file}", model.files[file].size) for file in model.files]
                 for name, model in jobs.items()}
        alone = jobs["org/m1"].size / (rate * connections)
        start = time.time()
        # What is due last is asked for first; and somebody warms a model that is due at no time.
        due = {f"job-{i}": math.ceil(start + i * alone) for i in (3, 2, 1)}
        for lease, at in due.items():
            status, answer = take(mounted, lease, [f"org/m{lease[-1]}"], at)
            assert status == 200 and not answer["complete"] and not answer["late"], answer
        # The same bytes by a client that knows what comes, at the same time, from an origin as fast: what the
        # machine does beside it is in both.
        with PlainClient(other, [files[f"org/m{i}"] for i in (1, 2, 3)], connections, part) as plain:
            start = time.time()
            mounted.cli("warm", "org/m4")
            done = {}

            def all_complete():
                now = time.time()
                for lease, state in leases(mounted).items():
                    if state["complete"]:
                        done.setdefault(lease, now)
                return len(done) == 3
            until(all_complete, 120, "all leases are complete", interval=0.05)
            by_plain = plain.result()
        # When the last byte had left the origin, by the origin's clock.
        sent = {lease: source.last_sent(f"m{lease[-1]}/") - start for lease in due}
        parts = {lease: sent[lease] / by_plain[int(lease[-1]) - 1] for lease in sorted(due)}
        print(f"at the origin's speed one model takes {alone:.2f} s, by a plain client {by_plain}; leases as a part of "
              f"that: {parts}; complete {[f'{done[lease] - start - sent[lease]:.2f}' for lease in parts]} s later")
        assert done["job-1"] < done["job-2"] < done["job-3"]
        assert all(part <= 1.05 for part in parts.values()), parts
        assert all(done[lease] - start - sent[lease] < 3 for lease in due), "what has come is soon complete"
        until(lambda: mounted.model("org/m4")["complete"], 60, "what was warmed comes in the end")
        for name in list(jobs)[1:5]:  # each byte once: nothing that was begun was thrown away
            for shard in jobs[name].shards:
                path = f"{name.removeprefix('org/')}/{shard}"
                assert source.coverage(path, jobs[name].files[shard].size) == (1, 1)


@pytest.mark.short
def test_leases_survive_a_killed_daemon_and_go_on(node, jobs):
    mounted = node(rate=2 * MB, connections=4)
    at = time.time() + 60
    assert take(mounted, "job", ["org/m0", "org/m1"], at, priority=3, bandwidth=5_000_000)[0] == 200
    before = leases(mounted)["job"]
    assert before["priority"] == 3 and before["bandwidth"] == 5_000_000
    assert before["artifacts"] == ["org/m0", "org/m1"]
    old = mounted.kill_filling_daemon()
    mounted.wait_new_daemon(old)
    after = leases(mounted)["job"]
    for member in ("artifacts", "not_before", "until", "priority", "bandwidth"):
        assert after[member] == before[member]
    complete(mounted, "job")  # nobody has asked again
    for name in ("org/m0", "org/m1"):
        for shard in jobs[name].shards:
            assert (mounted.mount / name / shard).read_bytes() == jobs[name].data(shard)


def as_user(user, mounted, *arguments):
    """`weightfs` as another user of this machine."""
    def become():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    return subprocess.run([str(daemon.binary()), "--socket", str(mounted.socket), *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, preexec_fn=become)


@pytest.mark.short
def test_a_lease_is_its_takers_and_roots_over_a_restart(node):
    mounted = node()
    mounted.socket.chmod(0o666)
    ada, bob = 54321, 54322
    put = ("lease", "put", "job", "org/m0", "--for", "1h")
    assert as_user(ada, mounted, *put, "--owner", "team-a").returncode == 0
    assert as_user(ada, mounted, *put).returncode == 0, "who took it renews it"
    old = mounted.kill_daemon()
    mounted.wait_new_daemon(old)
    taken = leases(mounted)["job"]
    assert (taken["user"], taken["owner"]) == (ada, "team-a")
    assert "team-a" in mounted.cli("lease", "ls").stdout
    for arguments in (put, ("lease", "rm", "job")):
        refused = as_user(bob, mounted, *arguments)
        assert refused.returncode == 1 and "was taken by user 54321 (for team-a)" in refused.stderr, refused
    assert leases(mounted)["job"]["until"] == taken["until"]
    assert ask(mounted.socket, "PUT", "/v1/leases/job",
               {"artifacts": ["org/m0"], "not_before": stamp(time.time()), "until": taken["until"]})[0] == 200
    assert leases(mounted)["job"]["user"] == ada, "it is still hers after root renewed it"
    assert as_user(ada, mounted, "lease", "rm", "job").returncode == 0
    assert as_user(bob, mounted, *put).returncode == 0
    assert leases(mounted)["job"]["user"] == bob
    mounted.cli("lease", "rm", "job")  # as root


@pytest.mark.short
def test_what_becomes_of_leases_is_told(node):
    def told(lease):
        events = [json.loads(line) for line in mounted.cli("events", "--json", "-n", "4096").stdout.splitlines()]
        return [one for one in events if one["event"] == "lease" and one["lease"] == lease]

    def actions(lease):
        return [one["action"] for one in told(lease)]
    mounted = node()
    key, size = mounted.model("org/m0")["key"][:12], mounted.model("org/m0")["bytes"]
    begin = time.time()
    assert take(mounted, "job", ["org/m0"], begin + 60)[0] == 200
    until(lambda: "complete" in actions("job"), 30, "it is told to be complete")
    assert take(mounted, "job", ["org/m0"], begin + 90)[0] == 200
    until(lambda: actions("job") == ["taken", "complete", "renewed", "complete"], 30, "and renewed")
    mounted.cli("lease", "rm", "job")
    assert actions("job")[-1] == "released" and told("job")[-1]["reason"] == "asked for by root"
    for one in told("job"):
        assert (one["name"], one["snapshot"], one["bytes"]) == ("org/m0", key, size)

    # Its source is away: late at once, and then over.
    mounted.origin.stop()
    assert take(mounted, "late", ["org/m1", "org/m2"], begin - 10, math.ceil(time.time() + 2))[0] == 200
    until(lambda: actions("late") == ["taken", "late", "expired"], 30, "it is told to be late, and over")
    late = told("late")[1]
    assert 0 < late["bytes"] <= 2 * size and "org/m1, org/m2" in late["reason"]


@pytest.mark.short
def test_a_lease_ends_by_the_clock_and_by_hand(node):
    mounted = node()
    begin = time.time()
    assert take(mounted, "short", ["org/m0"], begin, math.ceil(begin + 5))[0] == 200
    assert take(mounted, "long", ["org/m1"], begin)[0] == 200
    complete(mounted, "long")
    refused = mounted.cli("evict", "org/m1", check=False)
    assert refused.returncode == 1 and "leased" in refused.stderr
    until(lambda: "short" not in leases(mounted), 30, "the lease is over")
    assert time.time() >= begin + 5
    mounted.cli("evict", "org/m0")
    # It is out of the file, too, and the one that holds is not.
    until(lambda: [one["id"] for one in json.loads((mounted.state / "leases.json").read_text())["leases"]]
          == ["long"], 30, "the file is written")
    assert "long" in mounted.cli("lease", "ls").stdout
    mounted.cli("lease", "rm", "long")
    assert ask(mounted.socket, "GET", "/v1/leases/long")[0] == 404
    mounted.cli("evict", "org/m1")
    mounted.cli("lease", "put", "again", "org/m1", "--for", "1h")
    complete(mounted, "again")


def test_what_nobody_leases_any_more_is_not_fetched_on(node):
    mounted = node(rate=MB // 4, connections=4)
    assert take(mounted, "job", ["org/m0"], time.time() + 600)[0] == 200
    until(lambda: mounted.status()["fills"], 30, "it is being fetched")
    assert ask(mounted.socket, "DELETE", "/v1/leases/job") == (200, {})
    until(lambda: not mounted.status()["fills"], 30, "it is not fetched any more")
    assert not mounted.model("org/m0")["complete"]


def test_what_is_leased_survives_a_flood_and_what_cannot_fit_is_refused(node, jobs):
    mounted = node(capacity=str(110 * MB), min_free="1%")  # three models
    assert take(mounted, "job", ["org/m0"])[0] == 200
    complete(mounted, "job")
    for _ in range(2):
        for name in list(jobs)[1:]:
            mounted.wait(name)
            assert mounted.model("org/m0")["complete"], name
    assert mounted.status()["policy"]["evictions"] >= 5
    # Two more fit beside it, but not three.
    before = leases(mounted)
    status, answer = take(mounted, "more", ["org/m1", "org/m2", "org/m3"])
    assert status == 507 and answer["error"]["code"] == "no_space", answer
    assert "leased" in answer["error"]["message"] and "MB" in answer["error"]["message"]
    assert set(leases(mounted)) == set(before)
    assert take(mounted, "more", ["org/m1", "org/m2"])[0] == 200
    complete(mounted, "more")
    # What could not go is told.
    for path in jobs["org/m4"].shards:
        assert (mounted.mount / "org/m4" / path).read_bytes() == jobs["org/m4"].data(path)
    kept = {one["reason"]: one["bytes"] for one in mounted.status()["policy"]["kept"]}
    assert kept["leased"] >= 3 * SHARDS * SHARD
    assert all(leases(mounted)[lease]["complete"] for lease in ("job", "more"))


@pytest.mark.short
def test_a_pin_with_an_end_is_over_by_itself(node):
    mounted = node()
    begin = time.time()
    told = mounted.cli("pin", "org/m0", "--for", "6s", "--reason", "a demo").stdout
    assert "pinned until" in told
    pinned = mounted.model("org/m0")
    assert pinned["pinned"] and pinned["pin_reason"] == "a demo" and pinned["pin_owner"] == "root"
    assert begin + 5 <= pinned["pin_until"] <= time.time() + 7
    if time.time() < pinned["pin_until"] - 1:
        refused = mounted.cli("evict", "org/m0", check=False)
        assert refused.returncode == 1 and "pinned by root until" in refused.stderr
    until(lambda: not mounted.model("org/m0")["pinned"], 30, "the pin is over")
    assert time.time() >= pinned["pin_until"] - 1
    over = mounted.model("org/m0")
    assert over["pin_reason"] == "" and over["pin_owner"] == "" and over["pin_until"] == 0
    mounted.cli("evict", "org/m0")


def test_a_leases_bandwidth_holds_back_all_that_is_fetched_for_it_alone(node, jobs):
    mounted = node(part_size="256KiB")
    rate = 12 * MB
    start = time.monotonic()
    assert take(mounted, "slow", ["org/m0", "org/m1"], time.time() + 60, bandwidth=rate)[0] == 200
    until(lambda: leases(mounted)["slow"]["complete"], 60, "the lease is complete")
    assert time.monotonic() - start >= 0.9 * (jobs["org/m0"].size + jobs["org/m1"].size) / rate


def test_what_somebody_warms_is_not_held_back_by_a_lease(node, jobs):
    mounted = node(part_size="256KiB")
    start = time.monotonic()
    assert take(mounted, "slow", ["org/m0"], time.time() + 60, bandwidth=1 * MB)[0] == 200
    mounted.wait("org/m0")
    assert time.monotonic() - start < 0.7 * jobs["org/m0"].size / MB


def test_as_many_leases_as_there_can_be(node):
    """1024: taken, shown, kept over a killed daemon, expired; and the daemon answers all the while."""
    mounted = node()
    mounted.wait("org/m0")
    assert take(mounted, "job-0", ["org/m0"])[0] == 200
    mounted.stop()
    # Most of them as if they had been taken before: each is a write of its own, with a flush.
    file = mounted.state / "leases.json"
    book = json.loads(file.read_text())
    book["leases"] = [book["leases"][0] | {"id": f"job-{number}"} for number in range(1000)]
    file.write_text(json.dumps(book))
    mounted.start()
    slowest = 0.0
    begin = time.time()
    end = math.ceil(begin + 12)  # of the last 24
    for number in range(1000, 1024):
        before = time.monotonic()
        status, answer = take(mounted, f"job-{number}", ["org/m0"], begin, end)
        slowest = max(slowest, time.monotonic() - before)
        assert status == 200 and answer["complete"], answer
    status, answer = take(mounted, "one-more", ["org/m0"], begin, end)
    assert status != 200 and "1024" in answer["error"]["message"], answer
    assert take(mounted, "job-3", ["org/m0"], begin, end)[0] == 200, "one is renewed, until then"
    before = time.monotonic()
    assert len(leases(mounted)) == 1024
    listed = time.monotonic() - before
    mounted.wait_new_daemon(mounted.kill_daemon())
    before = time.monotonic()
    assert len(leases(mounted)) == 1024 or time.time() >= end
    again = time.monotonic() - before
    until(lambda: len(leases(mounted)) == 999, 60, "the last ones are over")
    assert time.time() >= end
    print(f"of 1024 leases one is taken in at most {slowest * 1000:.0f} ms; listed in {listed * 1000:.0f} ms, "
          f"after a restart in {again * 1000:.0f} ms")
    assert max(slowest, listed, again) < 5
    until(lambda: len(json.loads(file.read_text())["leases"]) == 999, 30, "the file is written")
