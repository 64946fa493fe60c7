# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A fleet of models over a store with little room, and those who use them."""

import contextlib
import json
import os
import subprocess
import sys

import pytest

import models
import mounts
from pod import own_cgroup
from sampling import Highest
from waiting import until

MB = 1 << 20
SHARDS, SHARD = 2, 20 * MB        # of each model: 40 MB and a few small files
LIMIT = 200 * MB                  # four models fit, five do not

READ = ("import hashlib, json, pathlib, sys\n"
        "files = [p for p in sorted(pathlib.Path(sys.argv[1]).rglob('*')) if p.is_file()]\n"
        "print(json.dumps({str(p.relative_to(sys.argv[1])): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}))")


@pytest.fixture(scope="session")
def fleet(work):
    """Seven models, each in a folder of its own below one root."""
    root = work / "fleet"
    root.mkdir()
    made = {}
    for number in range(7):
        folder = root / f"m{number}"
        models.write_model(folder, SHARDS, SHARD, seed=100 + number)
        made[f"org/m{number}"] = models.describe(folder)
    return made


@pytest.fixture
def disk(folder):
    with mounts.ext4(folder, 512) as point:
        yield point


@pytest.fixture
def cache(weightfs, origin, fleet, work, disk):
    """A mount of the whole fleet over a disk of 512 MiB. Limits as options."""
    def make(names=None, **config):
        source = origin(root=work / "fleet")
        limits = {"capacity": str(LIMIT), "min_free": "5%", "admission": "always"} | config
        mounted = weightfs({name: source.url(f"{name.removeprefix('org/')}/") for name in names or fleet},
                           store=disk / "store", config=limits)
        mounted.origin = source
        return mounted
    return make


def consume(mounted, name, consumer, held=0):
    """Reads a whole model as one consumer: its own session, and its own cgroup where that can be had.
    Returns its files' digests. `held` files stay open, by others."""
    cgroup = own_cgroup(f"weightfs-consumer-{os.getpid()}-{consumer}")

    def join():
        if cgroup is not None:
            (cgroup / "cgroup.procs").write_text("0")
    try:
        done = subprocess.run([sys.executable, "-c", READ, str(mounted.mount / name)], check=True, timeout=60,
                              capture_output=True, text=True, start_new_session=True, preexec_fn=join)
    finally:
        if cgroup is not None:
            with contextlib.suppress(OSError):
                cgroup.rmdir()
    # Its last closes are on their way to the daemon, which takes what is open for needed.
    until(lambda: mounted.status()["fuse"]["open_files"] == held, 30, "its files are closed")
    return json.loads(done.stdout)


def right(model):
    return {name: file.sha256 for name, file in model.files.items()}


def complete(mounted, name):
    return mounted.model(name)["complete"]


def settled(mounted, name):
    until(lambda: complete(mounted, name), 30, f"{name} is complete")


def mounts_used(disk):
    of = os.statvfs(disk)
    return (of.f_blocks - of.f_bfree) * of.f_frsize


def watch(disk):
    """How much of a disk is used at most, in the block."""
    return Highest(lambda: mounts_used(disk))
