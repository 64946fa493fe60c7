# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The modes prod, off and shadow: what they keep, what they leave alone, and the way from one to another."""

import mmap
import random

import pytest

import models
import processes
from fleet import MB, SHARD, SHARDS
from readers import same_tree
from sampling import Highest
from waiting import until

# What reads past the store share in memory (fetch::FetcherOptions), and what all else may take beside it: what
# connections have on its way there, and answers on their way to the kernel.
WINDOW, BESIDE = 128 << 20, 128 << 20


def tree(folder):
    """Every file of a directory: its bytes, and what a write would change beside them."""
    return {str(path): (status.st_mtime_ns, status.st_ino, models.sha256(path) if path.is_file() else "")
            for path in sorted(folder.rglob("*")) if (status := path.stat())}


@pytest.mark.short
def test_a_mode_is_changed_at_run_time_and_holds_over_a_crash(cache, fleet):
    mounted = cache(["org/m0", "org/m1"])
    model = fleet["org/m0"]
    mounted.wait("org/m0")
    held = open(mounted.mount / "org/m0" / "model-00001-of-00002.safetensors", "rb")
    with held:
        assert mounted.cli("mode", "off").stdout == "off\n"
        before = tree(mounted.store)
        pulled = mounted.status()["source"]["bytes"]
        same_tree(mounted.mount / "org/m0", model)
        assert mounted.status()["source"]["bytes"] >= pulled + SHARD, "off reads past the store"
        same_tree(mounted.mount / "org/m1", fleet["org/m1"])
        assert tree(mounted.store) == before
        status = mounted.status()
        assert (status["mode"], status["policy"]["used"]) == ("off", 0)
        assert mounted.cli("warm", "org/m1", check=False).returncode == 1

        mounted.wait_new_daemon(mounted.kill_daemon())
        assert mounted.status()["mode"] == "off"
        assert held.read(MB) == model.data("model-00001-of-00002.safetensors")[:MB]

    assert mounted.cli("mode", "prod").stdout == "prod\n"
    pulled = mounted.status()["source"]["bytes"]
    same_tree(mounted.mount / "org/m0", model)
    assert mounted.status()["source"]["bytes"] == pulled, "what was kept is there again"
    assert mounted.cli("mode", "sometimes", check=False).returncode != 0


@pytest.mark.short
def test_shadow_begins_with_what_the_store_has_and_leaves_every_file_of_it_alone(cache, fleet):
    mounted = cache(["org/m0", "org/m1"])
    mounted.wait("org/m0")
    mounted.stop()
    before = tree(mounted.store)
    mounted.options += ["--mode", "shadow"]
    mounted.start()
    for name in ("org/m0", "org/m1", "org/m1"):
        same_tree(mounted.mount / name, fleet[name])
    status = mounted.status()
    mounted.wait_new_daemon(mounted.kill_daemon())
    mounted.stop()
    assert tree(mounted.store) == before
    assert status["source"]["bytes"] >= fleet["org/m0"].size, "what the store has is not read from it"
    assert status["shadow"]["hits"] >= 2 * SHARDS, "a model that was there, and one that would have been kept"
    assert status["policy"]["used"] >= fleet["org/m0"].size + SHARDS * SHARD
    assert status["store"]["bytes"] == 0


def test_what_was_streamed_in_another_mode_is_opened_after_it_was_evicted(cache, fleet):
    """The kernel knows its files as complete, looks up again when they are not, and does so once."""
    mounted = cache(["org/m0"])
    mounted.wait("org/m0")
    for mode in ("off", "shadow"):
        same_tree(mounted.mount / "org/m0", fleet["org/m0"])
        mounted.cli("mode", mode)
        with open(mounted.mount / "org/m0" / "model-00001-of-00002.safetensors", "rb") as file:
            assert len(file.read(MB)) == MB
        until(lambda: not mounted.status()["fills"], 30, "what was streamed is over")
        mounted.cli("mode", "prod")
        assert (mounted.mount / "org/m0" / "model-00001-of-00002.safetensors").stat().st_size > SHARD - MB
        mounted.cli("evict", "org/m0")
        same_tree(mounted.mount / "org/m0", fleet["org/m0"])
        mounted.wait("org/m0")


def anonymous(pid):
    """Memory of a process that no file has; bytes."""
    return processes.status_field(pid, "RssAnon") << 10


def same_mapped(mounted, plain, faults):
    """Single pages at random places, each by a fault of its own, and then all of it in turn."""
    chance = random.Random(1)
    with open(mounted, "rb") as left, open(plain, "rb") as right, \
            mmap.mmap(left.fileno(), 0, prot=mmap.PROT_READ) as ours, \
            mmap.mmap(right.fileno(), 0, prot=mmap.PROT_READ) as theirs:
        ours.madvise(mmap.MADV_RANDOM)
        for _ in range(faults):
            offset = chance.randrange(len(theirs) // mmap.PAGESIZE) * mmap.PAGESIZE
            assert ours[offset:offset + mmap.PAGESIZE] == theirs[offset:offset + mmap.PAGESIZE], offset
        ours.madvise(mmap.MADV_NORMAL)
        for offset in range(0, len(theirs), MB):
            assert ours[offset:offset + MB] == theirs[offset:offset + MB], offset


@pytest.mark.seconds(300)
@pytest.mark.parametrize("mode", ["off", "shadow"])
def test_without_the_cache_a_mapped_file_streams_through_bounded_memory(weightfs, origin, large, mode):
    mounted = weightfs({"org/large": origin().url("large/")}, config={"mode": mode})
    before = tree(mounted.store)
    pid = mounted.pid
    idle = anonymous(pid)
    with Highest(lambda: anonymous(pid)) as memory:
        for name in large.shards:
            same_mapped(mounted.mount / "org/large" / name, large.path(name), faults=200)
    status = mounted.status()
    size = sum(large.files[name].size for name in large.shards)
    print(f"{mode}: {memory.most >> 20} MiB of anonymous memory at most in {memory.samples} samples, {idle >> 20} MiB "
          f"before; {status['source']['bytes'] >> 20} MiB fetched for {size >> 20}")
    assert memory.samples > 20 and size > 4 * (WINDOW + BESIDE)
    assert memory.most - idle < WINDOW + BESIDE
    assert status["source"]["bytes"] >= size - len(large.shards) * MB
    assert (status["cache"]["hits"], status["cache"]["misses"]) == (0, 0)
    assert status["store"]["bytes"] == 0 and tree(mounted.store) == before
