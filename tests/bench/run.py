#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""sudo tests/bench/run.py [--quick] [--json FILE]

Measures weightfs beside what it is compared with, in one run and in turns: complete files beside the same
files on the filesystem that the store is on, and a model that nothing of is there beside aria2c. Prints a
table of ratios and what a miss cost, and exits with 1 when a gate is missed. Takes a few minutes;
--quick takes seconds on a small model, with gates that hold on a machine that does other things, too: it is
one of the tests. Needs what packaging/deps.sh bench installs and build/weightfs (WEIGHTFS_BUILD names
another build directory). NOTES.md beside this file says how each number is made.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import resource
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "integration")]

import daemon  # noqa: E402
import models  # noqa: E402
import prefetch  # noqa: E402
from comparison import AS_SPEED, AS_TIME, Comparison, Gate  # noqa: E402
from observer import Observer, children  # noqa: E402
from paced_origin import PacedOrigin  # noqa: E402
from page_cache import forget, warm  # noqa: E402
from workplace import Failed, Workplace, files_below  # noqa: E402

NAME = "org/model"
LIMIT_SECONDS = 300


@dataclasses.dataclass(frozen=True)
class Plan:
    shard_bytes: int
    pace: int  # of the origin: bytes per second and connection
    short_pairs: int  # of what takes milliseconds
    long_pairs: int
    unpaced_pairs: int  # of a miss without a limit
    hot_gate: Gate
    miss_gate: Gate
    library: bool  # the loader is safetensors', if it can be had
    shards: int = 4


FULL = Plan(272 << 20, 20_000_000, short_pairs=15, long_pairs=5, unpaced_pairs=5,
            hot_gate=Gate(0.85, at_least=True), miss_gate=Gate(1.5, at_least=False), library=True)
QUICK = Plan(64 << 20, 8_000_000, short_pairs=11, long_pairs=3, unpaced_pairs=0,
             hot_gate=Gate(0.5, at_least=True), miss_gate=Gate(2.5, at_least=False), library=False)


class Bench:
    def __init__(self, place, plan):
        self.place, self.plan = place, plan
        self.model = models.cached(place.kept / f"model-{plan.shard_bytes >> 20}", plan.shards,
                                   plan.shard_bytes, seed=3)
        self.shards = [self.model.path(name) for name in self.model.shards]
        self.reader, self.python = place.reader(), place.python(install=plan.library)
        self.comparisons, self.costs, self.library = [], {}, None
        self.passthrough = False
        self.reads_of_complete = 0
        self.prefetch_passed, self.prefetches = True, []

    def origin(self, pace=None):
        return PacedOrigin(self.model.folder.parent, self.place.fresh("nginx"), pace)

    def weightfs(self, origin, **options):
        return daemon.Weightfs(self.place.fresh("weightfs"), {NAME: origin.url(self.model.folder.name + "/")},
                               **options)

    def add(self, comparison, *measure):
        comparison.measure(*measure)
        self.comparisons.append(comparison)
        print(comparison.row(), flush=True)

    @property
    def passed(self):
        """Every gate holds, and what the kernel serves by itself has cost no READ."""
        return (all(comparison.passed for comparison in self.comparisons) and self.prefetch_passed and
                not (self.passthrough and self.reads_of_complete))

    # ---- complete files

    def complete(self, passthrough):
        with self.origin() as origin, self.weightfs(origin, passthrough=passthrough) as mounted:
            mounted.wait(NAME, LIMIT_SECONDS)
            status = mounted.status()
            if passthrough:
                self.passthrough = status["passthrough"]["active"]
                if not self.passthrough:
                    print(f"no passthrough here: {status['passthrough']['reason']}")
            if os.stat(mounted.store).st_dev != os.stat(self.model.folder).st_dev:
                raise Failed("the store and the model are not on the same filesystem")
            ours = [mounted.mount / NAME / name for name in self.model.shards]
            blobs = [mounted.blob(self.model.files[name].sha256) for name in self.model.shards]
            if passthrough:
                before = mounted.reads()
                # The full run is about passthrough; the quick one is to pass wherever weightfs works.
                gated = self.passthrough or self.plan is FULL
                self.hot(ours, blobs, "", self.plan.hot_gate if gated else None)
                self.cold(mounted, ours, blobs)
                self.reads_of_complete = mounted.reads() - before
            else:
                self.hot(ours, blobs, ", served", None)

    def hot(self, ours, blobs, suffix, gate):
        """One shard each, brought into the page cache in the same way."""
        theirs = self.shards[0]
        forget(theirs, ours[0], blobs[0])
        warm([theirs, ours[0]])
        for name, mode in (("hot sequential read", "sequential"), ("hot 4 KiB random mmap", "random")):
            self.add(Comparison(name + suffix, "native", AS_SPEED, gate), self.plan.short_pairs,
                     lambda: self.read(mode, theirs), lambda: self.read(mode, ours[0]))

    def read(self, mode, path):
        done = subprocess.run([str(self.reader), mode, str(path)], check=True, capture_output=True, text=True,
                              timeout=LIMIT_SECONDS)
        seconds, total = done.stdout.split()
        if self.__dict__.setdefault("sum_" + mode, total) != total:
            raise Failed(f"{path} has other bytes than were read before")
        return float(seconds)

    def cold(self, mounted, ours, blobs):
        folders = (self.model.folder, mounted.mount / NAME)
        if len({self.load(folder, "--check")["sha256"] for folder in folders}) != 1:
            raise Failed("the mount has other tensors than the native folder")

        def native():
            forget(*self.shards)
            return self.load(self.model.folder)["seconds"]

        def through_mount():
            forget(*ours, *blobs)
            return self.load(mounted.mount / NAME)["seconds"]

        self.add(Comparison("cold page cache, load", "native", AS_TIME), self.plan.long_pairs, native,
                 through_mount)

    def load(self, folder, *options):
        script = pathlib.Path(__file__).with_name("loader.py")
        done = subprocess.run([str(self.python), str(script), str(folder), *options], capture_output=True,
                              text=True, timeout=LIMIT_SECONDS)
        if done.returncode != 0:
            raise Failed(f"loading {folder}: {done.stderr}")
        loaded = json.loads(done.stdout)
        self.library = loaded["library"]
        return loaded

    # ---- a miss

    def miss(self, name, pace, pairs, gate):
        costs = self.costs[name] = []
        with self.origin(pace) as origin:
            self.add(Comparison(name, "aria2c", AS_TIME, gate), pairs,
                     lambda: self.by_aria2c(origin, costs), lambda: self.by_mount(origin, costs))

    def by_aria2c(self, origin, costs):
        folder = self.place.fresh("aria2c")
        urls = [origin.url(f"{self.model.folder.name}/{name}") for name in self.model.files]
        warm(self.shards)
        split = min(20 << 20, self.plan.shard_bytes // 13)  # aria2c's own 20M, but for small shards
        began, used = time.monotonic(), own_children()
        subprocess.run(["aria2c", "--no-conf", "--quiet", "-x16", "-s16", f"--min-split-size={split}",
                        "--file-allocation=falloc", "--force-sequential", "--dir", str(folder), *urls], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=LIMIT_SECONDS)
        seconds = time.monotonic() - began
        costs.append({"aria2c cpu": own_children() - used})
        if sum(path.stat().st_size for path in files_below(folder)) != self.model.size:
            raise Failed("aria2c did not fetch all of the model")
        self.place.fresh("aria2c")
        return seconds

    def by_mount(self, origin, costs):
        """On a node that has nothing of the model yet: a fresh store, a fresh mount."""
        warm(self.shards)
        with self.weightfs(origin) as mounted:
            status = mounted.status()
            workers = {f"nginx {n}": pid for n, pid in enumerate(children(origin.process.pid))}
            used = own_children()
            with Observer(daemon=status["pid"], keeper=status["keeper_pid"], **workers) as observer:
                began = time.monotonic()
                self.load(mounted.mount / NAME)
                seconds = time.monotonic() - began  # from outside, as aria2c's
                loader = own_children() - used
                mounted.wait(NAME, LIMIT_SECONDS)
                complete = time.monotonic() - began
            status = mounted.status()
            costs.append({
                "daemon cpu": observer.cpu["daemon"], "keeper cpu": observer.cpu["keeper"],
                "loader cpu": loader, "nginx cpu": sum(observer.cpu[worker] for worker in workers),
                "complete after": complete, "peak anonymous": observer.peak_anonymous,
                "peak resident": observer.peak_resident, "requests": status["source"]["requests"],
                "source bytes": status["source"]["bytes"], "fuse reads": status["fuse"]["reads"]})
        self.place.fresh("weightfs")
        return seconds

    # ---- all of it

    def run(self):
        self.complete(passthrough=True)
        self.complete(passthrough=False)
        self.miss(f"miss, {self.plan.pace // 1_000_000} MB/s a connection", self.plan.pace,
                  self.plan.long_pairs, self.plan.miss_gate)
        if self.plan.unpaced_pairs:
            self.miss("miss, unlimited origin", None, self.plan.unpaced_pairs, None)
        self.prefetch_passed, self.prefetches = prefetch.gate(self.place)

    def median_costs(self, name):
        found = {}
        for key in dict.fromkeys(key for cost in self.costs[name] for key in cost):
            found[key] = statistics.median(cost[key] for cost in self.costs[name] if key in cost)
        return found

    def print_costs(self):
        verdict = "" if not self.passthrough else "  MISSED" if self.reads_of_complete else "  ok"
        print(f"\nREADs that reached the daemon while complete files were read: {self.reads_of_complete}{verdict}")
        for name in self.costs:
            cost = self.median_costs(name)
            print(f"{name}: complete and verified after {cost['complete after']:.2f} s\n"
                  f"  CPU seconds: daemon {cost['daemon cpu']:.2f}, keeper {cost['keeper cpu']:.2f}, loader "
                  f"{cost['loader cpu']:.2f}, nginx {cost['nginx cpu']:.2f}; aria2c {cost['aria2c cpu']:.2f}\n"
                  f"  daemon's peak memory: anonymous {cost['peak anonymous'] / 2**20:.0f} MiB, resident "
                  f"{cost['peak resident'] / 2**20:.0f} MiB; {cost['requests']:.0f} requests for "
                  f"{cost['source bytes'] / self.model.size:.3f} of the model's bytes; "
                  f"{cost['fuse reads']:.0f} READs")


def own_children():
    """CPU seconds of the children that were waited for so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def machine(folder):
    def told(*command):
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    device = os.stat(folder).st_dev
    read_ahead = told("cat", f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/queue/read_ahead_kb")
    return {"kernel": os.uname().release, "cores": os.cpu_count(), "load": os.getloadavg()[0],
            "filesystem": told("findmnt", "-no", "FSTYPE", "-T", str(folder)),
            "read_ahead_kib": int(read_ahead) if read_ahead else None,
            "aria2c": told("aria2c", "--version").splitlines()[0].split()[-1]}


def main():
    parser = argparse.ArgumentParser(description="Measures weightfs; exits with 1 when a gate is missed.")
    parser.add_argument("--quick", action="store_true", help="a small model, few pairs, generous gates")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the results there")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("mounting needs root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    began = time.monotonic()
    with Workplace() as place:
        about = machine(place.run)
        bench = Bench(place, QUICK if options.quick else FULL)
        print(f"weightfs on Linux {about['kernel']}, {about['cores']} cores (load {about['load']:.1f}), "
              f"{about['filesystem']}, read-ahead {about['read_ahead_kib']} KiB; a model of "
              f"{bench.model.size / 1e6:.0f} MB in {len(bench.shards)} shards\n", flush=True)
        bench.run()
        bench.print_costs()
    if options.json:
        options.json.write_text(json.dumps({
            "machine": about, "seconds": time.monotonic() - began, "passed": bench.passed,
            "model_bytes": bench.model.size, "loader": bench.library,
            "comparisons": [comparison.as_json() for comparison in bench.comparisons],
            "reads_of_complete_files": bench.reads_of_complete, "prefetches": bench.prefetches,
            "miss_costs": {name: bench.median_costs(name) for name in bench.costs}}, indent=1) + "\n")
    print(f"\nloader: {bench.library}; {time.monotonic() - began:.0f} s; "
          f"{'every gate holds' if bench.passed else 'A GATE IS MISSED'}")
    return 0 if bench.passed else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, AssertionError, subprocess.SubprocessError, OSError) as error:
        sys.exit(f"bench: {error}")
