# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The record of what happened: what is in it, who may lose what of it, and that a replay reads it."""

import http.client
import itertools
import json
import signal
import subprocess
import threading
import time

import pytest

import daemon
import models
from api import ask
from fleet import consume, right
from readers import same_tree
from waiting import until

MB = 1 << 20
SHARDS, SHARD = 2, 8 * MB         # of each model: 16 MB and a few small files
NAMES = ("org/a", "org/b", "org/c")


@pytest.fixture(scope="session")
def trio(work):
    """Three models, each in a folder of its own below one root."""
    root = work / "trio"
    root.mkdir()
    made = {}
    for number, name in enumerate(NAMES):
        folder = root / name.removeprefix("org/")
        models.write_model(folder, SHARDS, SHARD, seed=300 + number)
        made[name] = models.describe(folder)
    return made


@pytest.fixture
def node(weightfs, origin, trio, work):
    """A mount of the three; settings as options."""
    def make(**config):
        source = origin(root=work / "trio")
        return weightfs({name: source.url(f"{name.removeprefix('org/')}/") for name in NAMES},
                        config=config)
    return make


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def events(mounted, *kinds, **members):
    """What the daemon tells, of these kinds and with these members."""
    told = lines(mounted.cli("events", "--json", "-n", "4096").stdout)
    return [one for one in told if (not kinds or one["event"] in kinds) and
            all(one[key] == value for key, value in members.items())]


def log(mounted):
    return lines((mounted.state / "events.jsonl").read_text())


def settled(mounted, name):
    until(lambda: mounted.model(name)["complete"], 30, f"{name} is complete")
    # The last file's events come just after it is complete. The models share their small files.
    key = mounted.model(name)["key"][:12]
    until(lambda: len([one for one in events(mounted, "fill", action="complete", snapshot=key)
                       if one["path"].endswith(".safetensors")]) == SHARDS, 10, "its fills are told")


def own_bytes(trio, name):
    """Of the files that no other of the models has."""
    others = {file.sha256 for other in trio if other != name for file in trio[other].files.values()}
    return sum(file.size for file in trio[name].files.values() if file.sha256 not in others)


def of_file(told):
    return {one["path"]: one["bytes"] for one in told}


def test_two_consumers_leave_their_references_misses_and_hits(node, trio):
    mounted, model = node(admission="second-reference"), trio["org/a"]
    assert consume(mounted, "org/a", "pod-1") == right(model)
    settled(mounted, "org/a")
    assert consume(mounted, "org/a", "pod-2") == right(model)
    sizes = {path: file.size for path, file in model.files.items()}
    key = mounted.model("org/a")["key"][:12]

    first, second = events(mounted, "reference")
    for one in first, second:
        assert (one["name"], one["snapshot"], one["bytes"]) == ("org/a", key, model.size)
    assert (first["reason"], second["reason"]) == ("miss", "hit")
    assert first["consumer"] != second["consumer"]
    for one, pod in (first, "pod-1"), (second, "pod-2"):
        assert pod in one["consumer"] or one["consumer"].startswith("session:"), "no cgroup can be made here"

    # The first one met some of the files when the fetching ahead was done with them.
    missed = events(mounted, "miss", consumer=first["consumer"])
    met = events(mounted, "hit", consumer=first["consumer"])
    assert missed and of_file(missed).keys() | of_file(met).keys() == sizes.keys()
    assert all(0 <= one["bytes"] <= sizes[one["path"]] for one in missed)
    # The second one hit every one of them, once.
    hits = events(mounted, "hit", consumer=second["consumer"])
    assert of_file(hits) == sizes and len(hits) == len(sizes)
    assert not events(mounted, "miss", consumer=second["consumer"])
    cache = mounted.status()["cache"]
    assert sum(one["bytes"] for one in events(mounted, "hit")) == cache["hit_bytes"]

    done = events(mounted, "fill", action="complete", snapshot=key)
    assert of_file(done) == sizes and len(done) == len(sizes)
    assert of_file(events(mounted, "verification", action="intact", snapshot=key)) == sizes
    told = events(mounted, "fill", "verification", "admission", snapshot=key)
    assert {one["name"] for one in told} == {"org/a"}
    begun = events(mounted, "fill", action="begin", snapshot=key)
    assert {one["path"] for one in begun} == sizes.keys()
    admitted = events(mounted, "admission", snapshot=key)
    assert [(one["action"], one["consumer"]) for one in admitted] == \
        [("probation", first["consumer"]), ("resident", second["consumer"])]


def test_evictions_and_flips_are_told_with_bytes_and_reason(node, trio, work):
    size = trio["org/a"].size
    mounted = node(admission="always", capacity=str(2 * size + MB), min_free="0")
    for name in NAMES:
        consume(mounted, name, "pod")
        settled(mounted, name)
    gone = events(mounted, "eviction")
    assert [(one["snapshot"], one["bytes"]) for one in gone] == [(mounted.model("org/a")["key"][:12], own_bytes(trio, "org/a"))]
    assert mounted.model("org/c")["key"][:12] in gone[0]["reason"]
    mounted.cli("evict", "org/b")
    asked = events(mounted, "eviction", name="org/b")
    assert [(one["bytes"], one["reason"]) for one in asked] == [(own_bytes(trio, "org/b"), "asked for")]

    before = mounted.model("org/c")
    folder = work / "trio" / "c"
    (folder / "more.txt").write_bytes(b"more")
    now = models.describe(folder)
    try:
        mounted.cli("update", "org/c")
        after = mounted.model("org/c")
        staged, flipped = events(mounted, "update", "flip", name="org/c")
        assert (staged["event"], flipped["event"]) == ("update", "flip")
        assert flipped["snapshot"] == after["key"][:12] != before["key"][:12]
        assert flipped["bytes"] == now.size
        assert flipped["reason"] == f"from {before['revision']} to {after['revision']}"
        same_tree(mounted.mount / "org/c", now)
    finally:
        (folder / "more.txt").unlink()
        models.describe(folder)
    mounted.cli("rm", "org/c")
    assert events(mounted)[-1]["event"] == "remove"


def test_a_model_without_room_is_told_as_refused(node, trio):
    mounted = node(admission="always", capacity=str(4 * MB), min_free="0")
    assert consume(mounted, "org/a", "pod") == right(trio["org/a"])
    refused = events(mounted, "refusal")
    assert set(trio["org/a"].shards) <= {one["path"] for one in refused}
    assert all("too little" in one["reason"] for one in refused)
    assert {one["path"] for one in events(mounted, "fill", action="stream")} >= set(trio["org/a"].shards)


def test_in_shadow_mode_every_decision_is_told_as_one_that_was_not_taken(node, trio):
    size = trio["org/a"].size
    mounted = node(mode="shadow", admission="always", capacity=str(2 * size + MB), min_free="0")
    for name, consumer in [("org/a", "p"), ("org/a", "q"), ("org/b", "p"), ("org/c", "p")]:
        assert consume(mounted, name, consumer) == right(trio[name])
    told = events(mounted, "shadow")
    cached = [one for one in told if one["action"] == "would_cache_artifact"]
    assert {one["snapshot"] for one in cached} == {mounted.model(name)["key"][:12] for name in NAMES}
    evicted, = [one for one in told if one["action"] == "would_evict"]
    assert (evicted["snapshot"], evicted["bytes"]) == (mounted.model("org/a")["key"][:12], own_bytes(trio, "org/a"))
    assert 0 < evicted["hit_rate"] < 1 and evicted["saved_bytes"] >= own_bytes(trio, "org/a")
    assert not events(mounted, "admission") and not events(mounted, "eviction")
    mounted.cli("mode", "off")
    assert events(mounted)[-1]["reason"] == "from shadow to off"


def test_bytes_without_their_digest_are_told(node, trio, work):
    mounted = node()
    shard = trio["org/b"].shards[0]
    path = work / "trio" / "b" / shard
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    try:
        mounted.cli("warm", "org/b")
        until(lambda: events(mounted, "verification", action="mismatch", path=shard), 30, "it is told")
        assert events(mounted, "fill", action="failed", path=shard)
    finally:
        path.write_bytes(content)


def test_the_log_is_what_was_told_and_a_replay_reads_it(node, trio):
    mounted = node(admission="always")
    closed = {}
    order = [("org/a", "p"), ("org/b", "q"), ("org/a", "p"), ("org/c", "p"), ("org/a", "r")]
    for name, consumer in order:
        # A consumer that comes back within a second is taken for one that has not gone.
        until(lambda: time.monotonic() > closed.get(name, 0) + 1.5, 10, "the last use of it is over")
        consume(mounted, name, consumer)
        closed[name] = time.monotonic()
        settled(mounted, name)
    told = events(mounted)
    until(lambda: len(log(mounted)) >= len(told), 10, "everything is written")
    written = log(mounted)
    assert [one["seq"] for one in written[:len(told)]] == [one["seq"] for one in told]
    for one, other in zip(written, told):
        assert {key: value for key, value in other.items() if value != "" or key in one} == one
    assert [(one["name"]) for one in told if one["event"] == "reference"] == [name for name, _ in order]

    size = trio["org/a"].size

    def replayed(capacity):
        answer = mounted.json("replay", mounted.state / "events.jsonl", "--capacity", f"{capacity}B",
                              "--policy", "lru")
        return next(one for one in answer["policies"] if one["policy"] == "lru")
    assert replayed(3 * size + MB)["object_hit_rate"] == pytest.approx(2 / 5)
    assert replayed(3 * size + MB)["byte_hit_rate"] == pytest.approx(2 / 5, abs=0.01)
    assert replayed(3 * size + MB)["repeated_job_hit_rate"] == 1
    assert replayed(size + MB)["object_hit_rate"] == 0
    assert replayed(size + MB)["evictions"] == 4
    hits = [one["reason"] for one in told if one["event"] == "reference"]
    assert hits == ["miss", "miss", "hit", "miss", "hit"], "what the replay says is what was"


class Follower:
    """weightfs events --follow --json, until the end of the block."""

    def __init__(self, mounted):
        self.path = mounted.folder / "followed"
        self.out = open(self.path, "wb")
        self.process = subprocess.Popen(
            [str(daemon.binary()), "--socket", str(mounted.socket), "events", "--follow", "--json"],
            stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.DEVNULL)

    def told(self):
        return lines(self.path.read_text().rpartition("\n")[0])

    def has(self, reason):
        return any(one["reason"] == reason for one in self.told())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)
        self.out.close()


def test_who_follows_misses_nothing_over_a_daemon_that_dies(node):
    mounted = node()
    with Follower(mounted) as follower:
        until(follower.told, 10, "what was is told")
        mounted.cli("pin", "org/a", "--reason", "one")
        until(lambda: follower.has("one"), 10, "what comes is told")
        for reason in "two", "three":
            mounted.cli("pin", "org/a", "--reason", reason)
            mounted.wait_new_daemon(mounted.kill_daemon())
        mounted.cli("pin", "org/a", "--reason", "four")
        until(lambda: follower.has("four"), 20, "what comes after a restart is told")
        until(lambda: follower.told()[-1]["seq"] == events(mounted)[-1]["seq"], 60, "all is told")
        told = follower.told()
        assert follower.process.poll() is None
    pins = [one["reason"] for one in told if one["event"] == "pin"]
    assert pins == ["one", "two", "three", "four"]
    assert len([one for one in told if one["event"] == "start"]) == 3
    sequences = [one["seq"] for one in told]
    assert sequences == sorted(set(sequences))
    # The last pin also warms: what that brings may come after the follower was looked at.
    assert sequences == [one["seq"] for one in events(mounted) if one["seq"] <= sequences[-1]]


@pytest.mark.short
def test_over_daemons_killed_under_load_who_follows_hears_each_event_once_and_that_some_may_be_lost(node):
    mounted = node(admission="always")
    over = threading.Event()

    def load(number):
        for turn in itertools.count():
            if over.is_set():
                return
            try:
                ask(mounted.socket, "POST", "/v1/models/org/a:pin", {"reason": f"{number}-{turn}"})
                (mounted.mount / "org/b/config.json").read_bytes()
            except (OSError, http.client.HTTPException):
                pass  # the daemon was killed over it
    with Follower(mounted) as follower:
        until(follower.told, 10, "what was is told")
        threads = [threading.Thread(target=load, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(2):
                heard = len(follower.told())
                until(lambda: len(follower.told()) > heard + 50, 30, "there is load")
                mounted.wait_new_daemon(mounted.kill_daemon())
        finally:
            over.set()
            for thread in threads:
                thread.join()
        mounted.cli("pin", "org/a", "--reason", "the last")
        until(lambda: follower.has("the last"), 20, "it is told")
        told = follower.told()
    sequences = [one["seq"] for one in told]
    assert sequences == sorted(set(sequences)), "each once, in order"
    kinds = [one["event"] for one in told]
    # Each death is told, for what the daemon recorded in its last moment nobody has.
    assert kinds.count("start") == 3 and kinds.count("dropped") == 2
    assert all(kinds[at + 1] == "start" and "killed" in told[at]["reason"]
               for at in range(len(kinds)) if kinds[at] == "dropped")
    until(lambda: any(one.get("reason") == "the last" for one in log(mounted)), 10, "it is written")
    missing = {one["seq"] for one in log(mounted) if sequences[0] <= one["seq"] <= sequences[-1]} - set(sequences)
    assert not missing, "what the log has, who follows has heard"


def test_the_daemon_ends_at_once_though_somebody_follows(node):
    mounted = node()
    with Follower(mounted) as follower:
        until(follower.told, 10, "what was is told")
        mounted.stop()
        assert follower.process.poll() is None, "it waits for the next daemon"
    assert log(mounted)[-1]["event"] == "stop"


def test_the_log_is_bounded_and_can_be_left_out(node):
    mounted = node(event_log_size="4KiB")
    for number in range(60):
        mounted.cli("pin", "org/a", "--reason", f"number {number}")
    mounted.stop()
    now, before = mounted.state / "events.jsonl", mounted.state / "events.jsonl.1"
    assert 0 < now.stat().st_size <= 4096 and 0 < before.stat().st_size <= 4096
    kept = lines(before.read_text() + now.read_text())
    pins = [one["reason"] for one in kept if one["event"] == "pin"]
    assert pins == [f"number {number}" for number in range(60 - len(pins), 60)]

    silent = node(event_log_size="0")
    silent.cli("pin", "org/a")
    assert events(silent, "pin")
    assert not (silent.state / "events.jsonl").exists()


def test_what_a_power_cut_left_of_a_line_costs_that_line(node):
    mounted = node()
    mounted.stop()
    path = mounted.state / "events.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq":1,"time":')
    mounted.start()
    mounted.cli("pin", "org/a")
    until(lambda: b'"event":"pin"' in path.read_bytes()[len(whole):], 10, "it is written")
    assert path.read_bytes().startswith(whole)
    assert events(mounted)[0]["seq"] == lines(whole.decode())[0]["seq"]
