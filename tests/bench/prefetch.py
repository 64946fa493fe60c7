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
from comparison import Gate  # noqa: E402
from origin import NginxOrigin  # noqa: E402
from workplace import Failed, Workplace  # noqa: E402

SECONDS = 2.0  # of reading, alone and beside a prefetch each
BEGINNING = 0.5  # of a prefetch: until it is under way
BLOCK = 4096
READ = (2, 128 << 20)      # shards, bytes of each
FETCHED = (4, 272 << 20)
GATE = Gate(1.3, at_least=False)  # of the p99 beside a prefetch that gives way, to that alone
GATE_ROUNDS, GATE_SECONDS = 8, 1.0
GATE_READ = (1, 64 << 20)
GATE_FETCHED = (2, 200 << 20)


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


def measure(place, origin, model, options, rounds, realtime, seconds=SECONDS):
    """[(alone, beside, bytes prefetched per second)] for each round. `alone` is the mean of before and after
    the prefetch: what the machine does meanwhile, and more of it as time goes by, is in both."""
    sources = {"org/read": origin.url("read/"), "org/fetched": origin.url("fetched/")}
    results = []
    with daemon.Weightfs(place.fresh("weightfs"), sources, options=["--admission", "always", *options],
                         env=daemon.GIVES_WAY) as mounted:
        if not mounted.status()["passthrough"]["active"]:
            return []
        mounted.wait("org/read")
        reader = Reader(mounted.mount / "org/read" / model.shards[0])
        if realtime:
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))
        try:
            os.sync()
            before = reader.p99(seconds)
            for _ in range(rounds):
                beside, speed = beside_a_prefetch(mounted, reader, seconds)
                os.sync()
                after = reader.p99(seconds)
                results.append(((before + after) / 2, beside, speed))
                before = after
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return results


def beside_a_prefetch(mounted, reader, seconds):
    with subprocess.Popen([str(daemon.binary()), "--socket", str(mounted.socket), "warm", "org/fetched"],
                          stdout=subprocess.DEVNULL):
        reader.p99(BEGINNING)  # a consumer does not stop for that
    before, begin = mounted.status()["source"]["bytes"], time.monotonic()
    beside = reader.p99(seconds)
    speed = (mounted.status()["source"]["bytes"] - before) / (time.monotonic() - begin)
    if mounted.model("org/fetched")["complete"]:
        raise Failed("the prefetch was over before the reader was")
    mounted.cli("evict", "org/fetched")
    return beside, speed


def summary(results):
    alone, beside, speed = (statistics.median(column) for column in zip(*results))
    return {"alone_us": alone, "beside_us": beside, "speed": speed, "rounds": results,
            "ratio": statistics.median(b / a for a, b, _ in results)}


def say(name, found):
    ratios = [b / a for a, b, _ in found["rounds"]]
    print(f"prefetch {name:10} p99 alone {found['alone_us']:6.0f} us, beside it {found['beside_us']:6.0f} us, "
          f"ratio {found['ratio']:.2f} [{min(ratios):.2f} .. {max(ratios):.2f}]; prefetched at "
          f"{found['speed'] / 1e6:.0f} MB/s", end="", flush=True)


def gate(place):
    """The short form, of a prefetch that gives way. Whether the gate holds, and what was measured; once more
    where it does not: a machine that does other things may be at them for all of one measurement."""
    tries = []
    model = models.cached(place.kept / "gate/read", *GATE_READ, seed=11)
    models.cached(place.kept / "gate/fetched", *GATE_FETCHED, seed=12)
    with NginxOrigin(place.kept / "gate", place.fresh("nginx")) as origin:
        while len(tries) < 2 and not (tries and GATE.holds(tries[-1]["ratio"])):
            results = measure(place, origin, model, [], GATE_ROUNDS, True, GATE_SECONDS)
            if not results:
                print("no passthrough here: the reader would not read the disk by itself")
                return True, []
            tries.append(summary(results))
            say("gives way", tries[-1])
            print(f"  {GATE}  {'ok' if GATE.holds(tries[-1]['ratio']) else 'MISSED'}")
    return GATE.holds(tries[-1]["ratio"]), tries


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
                if not results:
                    sys.exit("no passthrough here: the reader would not read the disk by itself")
                report[name] = summary(results)
                say(name, report[name])
                print()
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
