# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Limits of what is fetched and written, and who goes first."""

import threading
import time

import pytest

import models
from alone import alone
from daemon import GIVES_WAY
from readers import read_at, read_direct, same_tree
from waiting import until

MB = 1_000_000
MIB = 1 << 20
LIMIT = 20 * MB
MODERATE = (2, 64 << 20)  # shards, bytes of each


@pytest.fixture(scope="session")
def moderate(kept):
    with alone(kept):
        return models.cached(kept / "moderate", *MODERATE, seed=7)


class Samples:
    """What `count` says of a mount, again and again. Each has the time before and after it was asked for."""

    def __init__(self, mounted, count, interval=0.2):
        self.mounted, self.count, self.interval = mounted, count, interval
        self.taken = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._take)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _take(self):
        while not self._over.wait(self.interval):
            before = time.monotonic()
            value = self.count(self.mounted.status())
            self.taken.append((before, value, time.monotonic()))

    def highest_rate(self, seconds=1.0):
        """The most bytes per second between any two samples that are so far apart at least."""
        return max((last - first) / (end - begin)
                   for i, (begin, first, _) in enumerate(self.taken)
                   for _, last, end in self.taken[i + 1:] if end - begin >= seconds)


def source_bytes(status):
    return status["source"]["bytes"]


def test_two_models_and_a_reader_together_stay_below_the_limit_and_the_reader_goes_first(
        weightfs, origin, large, moderate):
    source = origin()
    mounted = weightfs({"org/large": source.url("large/"), "org/moderate": source.url("moderate/")},
                       options=["--fill-bandwidth", "20MB/s"])
    mounted.cli("warm", "org/large")
    mounted.cli("warm", "org/moderate")
    with Samples(mounted, source_bytes) as samples:
        until(lambda: source_bytes(mounted.status()) > LIMIT, 60, "both models are on their way")
        # The middle of the last shard: nothing of it would come for half a minute.
        name = large.shards[-1]
        length = 16 * MIB
        before = source_bytes(mounted.status())
        data = read_at(mounted.mount / "org/large" / name, 128 * MIB, length)
        beside = source_bytes(mounted.status()) - before - length
        until(lambda: source_bytes(mounted.status()) > 6 * LIMIT, 60, "some seconds have passed")
    with open(large.path(name), "rb") as plain:
        plain.seek(128 * MIB)
        assert data == plain.read(length)
    assert samples.highest_rate() <= 1.1 * LIMIT
    # What is fetched ahead has what the reader leaves while it copies what it has.
    assert beside <= length
    limit = mounted.status()["bandwidth"]["fill"]
    assert limit["bytes_per_second"] == LIMIT
    assert limit["waited_ms"] > 2000


def test_what_is_written_stays_below_its_limit_and_is_right(weightfs, origin, moderate):
    source = origin()
    mounted = weightfs({"org/m": source.url("moderate/")}, options=["--write-bandwidth", "40MB"])
    begin = time.monotonic()
    with Samples(mounted, source_bytes) as samples:
        mounted.wait("org/m")
    # 128 MiB; a twentieth of a second's worth passes at once.
    assert time.monotonic() - begin >= (moderate.size - 2 * MB) / (40 * MB)
    assert samples.highest_rate() <= 1.1 * 40 * MB
    bandwidth = mounted.status()["bandwidth"]
    assert bandwidth["write"]["waited_ms"] > 1000
    assert bandwidth["fill"] == {"bytes_per_second": 0, "waited_ms": 0}
    same_tree(mounted.mount / "org/m", moderate)


def test_a_warm_gives_way_while_a_consumer_reads_the_disk(weightfs, origin, large, moderate):
    source = origin()
    mounted = weightfs({"org/large": source.url("large/"), "org/moderate": source.url("moderate/")},
                       env=GIVES_WAY)
    status = mounted.status()
    if not status["passthrough"]["active"]:
        pytest.skip("without passthrough the daemon reads from its page cache: " +
                    status["passthrough"]["reason"])
    mounted.wait("org/moderate")
    path = mounted.mount / "org/moderate" / moderate.shards[0]
    over = threading.Event()

    def read():
        while not over.is_set():
            read_direct(path, 0, 4 * MIB)

    reader = threading.Thread(target=read)
    with open(path, "rb"):
        reader.start()
        try:
            mounted.cli("warm", "org/large")
            until(lambda: mounted.status()["bandwidth"]["prefetch"]["bytes_per_second"] > 0, 30,
                  "the warm has noticed the reader")
            before, begin = source_bytes(mounted.status()), time.monotonic()
            until(lambda: time.monotonic() - begin > 3, 10, "three seconds have passed")
            passed = source_bytes(mounted.status()) - before
            limit = mounted.status()["bandwidth"]["prefetch"]
        finally:
            over.set()
            reader.join()
    # At least one part a second, and what the machine did before counts a little.
    assert 8 * MIB <= passed <= 3 * 40 * MIB
    assert limit["waited_ms"] > 1000
    # With the reader it would take more than a minute.
    mounted.wait("org/large", 60)


def test_nobody_gives_way_where_that_is_off_or_nobody_has_a_file_open(weightfs, origin, moderate):
    source = origin()
    for options in [], ["--no-yield-to-readers"]:
        mounted = weightfs({"org/moderate": source.url("moderate/")}, options=options, env=GIVES_WAY)
        over = threading.Event()
        # Of the same disk, but not through the mount.
        reader = threading.Thread(target=lambda: [read_direct(moderate.path(moderate.shards[0]), 0, 4 * MIB)
                                                  for _ in iter(over.is_set, True)])
        reader.start()
        try:
            mounted.wait("org/moderate")
        finally:
            over.set()
            reader.join()
        assert mounted.status()["bandwidth"]["prefetch"]["waited_ms"] == 0


def test_a_reader_gets_its_bytes_although_every_connection_waits(weightfs, origin, large, moderate):
    source = origin()
    mounted = weightfs({"org/large": source.url("large/"), "org/moderate": source.url("moderate/")},
                       options=["--fill-bandwidth", "1MB/s", "--connections", "4",
                                "--deadline", "5s", "--stall-timeout", "1s"])
    mounted.cli("warm", "org/large")
    until(lambda: sum(fill["connections"] for fill in mounted.status()["fills"]) == 4, 30,
          "all connections are taken")
    begin = time.monotonic()
    before = source_bytes(mounted.status())
    for name in ["config.json", moderate.shards[1]]:
        assert read_at(mounted.mount / "org/moderate" / name, 0, 4096) == moderate.data(name)[:4096]
    assert source_bytes(mounted.status()) - before < 8 * MIB  # of which most is read ahead by the kernel
    # Longer than the deadline, and no fill has failed.
    until(lambda: time.monotonic() - begin > 7, 60, "the deadline has passed")
    status = mounted.status()
    assert status["fetch"]["failed"] == 0
    assert status["source"]["retries"] == 0
