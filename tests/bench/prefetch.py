#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""sudo tests/bench/prefetch.py [--rounds N] [--realtime] [--json FILE]

What a reader of a complete file notices of a model that is being prefetched: reads of 4 KiB at random
places of one model, from the disk (O_DIRECT, through the mount), alone and while another model is warmed
from an origin without a limit, in turns; with yield_to_readers and without it. Prints the 99th percentile
of each and their ratio, the median over all rounds, and how much was prefetched meanwhile.

--realtime lets the reader run before all others (SCHED_FIFO), on a machine that does other things: what is
left is what the disk does. NOTES.md beside this file has figures.
"""

import argparse
import json
import mmap
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "integration")]

import daemon  # noqa: E402
import models  # noqa: E402
from origin import NginxOrigin  # noqa: E402
from workplace import Workplace  # noqa: E402

SECONDS = 2.0  # of reading, alone and beside a prefetch each
BEGINNING = 0.5  # of a prefetch: until it is under way
BLOCK = 4096
READ = (2, 128 << 20)      # shards, bytes of each
FETCHED = (4, 272 << 20)


class Reader:
    def __init__(self, path):
        self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
        self.blocks = os.fstat(self.descriptor).st_size // BLOCK
        self.buffer = mmap.mmap(-1, BLOCK)
        self.random = random.Random(1)

    def p99(self, seconds):
        """Of the times of reads, in microseconds."""
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            offset = self.random.randrange(self.blocks) * BLOCK
            begin = time.perf_counter()
            os.preadv(self.descriptor, [self.buffer], offset)
            times.append(time.perf_counter() - begin)
        return statistics.quantiles(times, n=100)[98] * 1e6


def measure(place, origin, model, options, rounds, realtime):
    """[(alone, beside, bytes prefetched per second)] for each round."""
    sources = {"org/read": origin.url("read/"), "org/fetched": origin.url("fetched/")}
    results = []
    with daemon.Weightfs(place.fresh("weightfs"), sources, options=["--admission", "always", *options],
                         env=daemon.GIVES_WAY) as mounted:
        mounted.wait("org/read")
        reader = Reader(mounted.mount / "org/read" / model.shards[0])
        if realtime:
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))
        try:
            for _ in range(rounds):
                os.sync()
                alone = reader.p99(SECONDS)
                with subprocess.Popen([str(daemon.binary()), "--socket", str(mounted.socket), "warm", "org/fetched"],
                                      stdout=subprocess.DEVNULL):
                    reader.p99(BEGINNING)  # a consumer does not stop for that
                before, begin = mounted.status()["source"]["bytes"], time.monotonic()
                beside = reader.p99(SECONDS)
                speed = (mounted.status()["source"]["bytes"] - before) / (time.monotonic() - begin)
                mounted.cli("evict", "org/fetched")
                results.append((alone, beside, speed))
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    report = {}
    with Workplace() as place:
        model = models.cached(place.kept / "read", *READ, seed=11)
        models.cached(place.kept / "fetched", *FETCHED, seed=12)
        with NginxOrigin(place.kept, place.fresh("nginx")) as origin:
            for name, options in {"gives way": [], "does not": ["--no-yield-to-readers"]}.items():
                results = measure(place, origin, model, options, arguments.rounds, arguments.realtime)
                alone, beside, speed = (statistics.median(column) for column in zip(*results))
                ratio = statistics.median(b / a for a, b, _ in results)
                report[name] = {"alone_us": alone, "beside_us": beside, "ratio": ratio, "speed": speed,
                                "rounds": results}
                print(f"prefetch {name:10} p99 alone {alone:6.0f} us, beside it {beside:6.0f} us, "
                      f"ratio {ratio:.2f}; prefetched at {speed / 1e6:.0f} MB/s", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
