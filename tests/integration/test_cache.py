# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The store as a cache with limits: what is kept, what goes, and what does not fit."""

import hashlib
import mmap
import os
import shutil

import pytest

import models
import mounts
from fleet import LIMIT, MB, SHARD, SHARDS, complete, consume, mounts_used, right, settled, watch
from readers import pread_all, same_tree
from waiting import until


def test_the_least_recently_used_model_goes_and_the_disk_never_passes_its_limit(cache, fleet, disk):
    mounted = cache()
    empty = mounts_used(disk)
    names = list(fleet)
    with watch(disk) as disk_use:
        for name in names[:4]:
            mounted.wait(name)
        assert consume(mounted, names[0], "again") == right(fleet[names[0]])
        mounted.wait(names[4])
    assert disk_use.samples > 10
    assert disk_use.most - empty <= LIMIT + MB, "the index and the maps may have a little more"
    assert [complete(mounted, name) for name in names[:5]] == [True, False, True, True, True]
    policy = mounted.status()["policy"]
    assert policy["evictions"] == 1 and policy["used"] <= policy["limit"] == LIMIT
    # It comes back when it is asked for.
    assert consume(mounted, names[1], "again") == right(fleet[names[1]])


class Holders:
    """Files that are held open, half of them mapped, until the end of the block."""

    def __init__(self, tree, model, count):
        self.paths = [model.shards[i % len(model.shards)] for i in range(count)]
        self.model = model
        self.files = [open(tree / path, "rb", buffering=0) for path in self.paths]
        self.maps = [mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
                     for file in self.files[::2]]
        for file in self.files[::2]:
            file.close()  # the mapping holds it

    def check(self):
        for path, mapped in zip(self.paths[::2], self.maps):
            assert hashlib.sha256(mapped).hexdigest() == self.model.files[path].sha256
        for path, file in zip(self.paths[1::2], self.files[1::2]):
            data = pread_all(file.fileno(), 0, self.model.files[path].size)
            assert hashlib.sha256(data).hexdigest() == self.model.files[path].sha256

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for held in self.maps + self.files:
            held.close()


def test_what_is_pinned_open_or_mapped_survives_a_flood(cache, fleet, disk):
    """Space comes back after the last close, and whoever reads gets right bytes meanwhile."""
    mounted = cache()
    names = list(fleet)
    pinned, held = names[:2]
    mounted.cli("pin", pinned, "--reason", "kept")
    settled(mounted, pinned)
    mounted.wait(held)
    empty = mounts_used(disk) - mounted.status()["policy"]["used"]
    with watch(disk) as disk_use, Holders(mounted.mount / held, fleet[held], 8) as holders:
        for name in 2 * names[2:]:
            assert consume(mounted, name, "flood", held=2) == right(fleet[name])
            mounts.drop_caches()
            holders.check()
        assert complete(mounted, pinned) and complete(mounted, held)
    assert disk_use.most - empty <= LIMIT + MB
    assert mounted.status()["policy"]["evictions"] >= 5
    # Nobody holds it any more: it goes in its turn.
    for name in names[2:6]:
        mounted.wait(name)
    assert complete(mounted, pinned) and not complete(mounted, held)
    until(lambda: mounted.status()["store"]["evicted_open_bytes"] == 0, 10, "the space is back")


def test_a_model_that_cannot_fit_is_refused_by_warm_and_read_past_the_disk(cache, fleet):
    mounted = cache(names=["org/m0"], capacity=str(30 * MB))
    for command in (["warm", "org/m0"], ["pin", "org/m0"]):
        refused = mounted.cli(*command, check=False)
        assert refused.returncode == 1
        assert "no space" in refused.stderr and "31.5 MB" in refused.stderr, refused.stderr
    assert not mounted.model("org/m0")["pinned"]
    assert consume(mounted, "org/m0", "reader") == right(fleet["org/m0"])
    status = mounted.status()
    assert status["store"]["bytes"] == 0 and status["store"]["partial_bytes"] == 0
    assert status["policy"]["refused"] >= SHARDS


def test_what_could_not_go_is_told_with_its_reason(cache, fleet):
    mounted = cache(capacity=str(60 * MB))
    mounted.cli("pin", "org/m0")
    settled(mounted, "org/m0")
    refused = mounted.cli("warm", "org/m1", check=False)
    assert refused.returncode == 1 and "pinned" in refused.stderr
    assert consume(mounted, "org/m1", "reader") == right(fleet["org/m1"])
    kept = {one["reason"]: one["bytes"] for one in mounted.status()["policy"]["kept"]}
    assert kept["pinned"] >= SHARDS * SHARD
    assert "pinned" in mounted.cli("status").stdout


def test_a_second_consumer_makes_a_resident_without_another_pull(cache, fleet):
    mounted = cache(admission="second-reference", probation=str(100 * MB))
    first, second = "org/m0", "org/m1"
    for _ in range(2):  # a restarted pod is the same consumer
        assert consume(mounted, first, "pod-1") == right(fleet[first])
    settled(mounted, first)
    policy = mounted.status()["policy"]
    assert policy["probation_bytes"] > SHARDS * SHARD and policy["resident_bytes"] == 0
    mounted.stop()
    mounted.start()
    before = mounted.status()["source"]["bytes"]
    assert consume(mounted, first, "pod-2") == right(fleet[first])
    status = mounted.status()
    assert status["source"]["bytes"] == before
    assert status["policy"]["probation_bytes"] < 10_000
    assert status["policy"]["resident_bytes"] > SHARDS * SHARD
    # Probation has its own bounds: what came last pushes out what came before it, and no resident.
    for number in (1, 2, 3):
        consume(mounted, f"org/m{number}", "pod-1")
        settled(mounted, f"org/m{number}")
    assert complete(mounted, first) and not complete(mounted, second)


def test_with_admission_never_only_what_was_asked_for_is_kept(cache, fleet):
    mounted = cache(admission="never")
    mounted.wait("org/m0")
    for consumer in ("a", "b"):
        assert consume(mounted, "org/m1", consumer) == right(fleet["org/m1"])
        assert consume(mounted, "org/m0", consumer) == right(fleet["org/m0"])
    assert mounted.blobs() == {file.sha256 for file in fleet["org/m0"].files.values()}


def test_when_others_fill_the_disk_models_go_until_enough_is_free_again(cache, fleet, disk):
    mounted = cache(capacity="90%", min_free=str(100 * MB))
    names = list(fleet)
    for name in names[:5]:
        mounted.wait(name)
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with open(disk / "ballast", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - 60 * MB)
    until(lambda: os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize >= 100 * MB, 30, "room is made")
    assert not complete(mounted, names[0]) and complete(mounted, names[4])
    same_tree(mounted.mount / names[4], fleet[names[4]])


def test_a_rollback_is_at_once_and_needs_no_source(cache, origin, fleet, folder):
    """Also after a flood: what a name would be rolled back to is not evicted."""
    old = models.copy(fleet["org/m0"], folder / "root/m")
    source = origin(root=folder / "root")
    mounted = cache(names=list(fleet)[1:])
    mounted.cli("add", "org/m", source.url("m/"))
    mounted.wait("org/m")
    first = mounted.model("org/m")
    for number in range(2):  # neither is confirmed
        (folder / "root/m/README.md").write_text(f"revision {number}")
        new = models.describe(folder / "root/m")
        mounted.cli("update", "org/m")
    assert consume(mounted, "org/m", "reader") == right(new)
    shared = {file.sha256 for file in new.files.values()} & {file.sha256 for file in old.files.values()}
    assert len(shared) == len(old.files) - 1, "only one small file is new"
    source.stop()
    for name in list(fleet)[1:]:
        mounted.wait(name)
    assert mounted.model("org/m")["rollback"] == "ready"
    result = mounted.json("rollback", "org/m")
    assert result["to"] == first["revision"]
    assert mounted.model("org/m")["complete"]
    assert consume(mounted, "org/m", "reader") == right(old)
    assert mounted.cli("rollback", "org/m", check=False).returncode == 3
    assert mounted.model("org/m")["rollback"] == ""


def test_a_tenants_floor_survives_its_neighbours_flood(cache, fleet, disk):
    mounted = cache(tenants={"quiet": {"floor": "45%", "match": {"path": "org/m0"}},
                             "loud": {"cap": str(100 * MB), "match": {"namespace": "org"}}})
    names = list(fleet)
    mounted.wait(names[0])
    for name in names[1:]:
        assert consume(mounted, name, "flood") == right(fleet[name])
        settled(mounted, name)
        assert complete(mounted, names[0])
    policy = mounted.status()["policy"]
    loud, quiet = policy["tenants"]
    assert (quiet["name"], quiet["floor"]) == ("quiet", LIMIT * 45 // 100)
    assert quiet["bytes"] >= SHARDS * SHARD, "small files that others have as well count with the last user"
    assert SHARDS * SHARD <= loud["bytes"] <= loud["cap"] == 100 * MB
    assert policy["evictions"] >= 4


def test_on_a_full_disk_current_confirmed_pinned_and_leased_survive_a_new_revision_and_a_flood(
        cache, origin, fleet, folder, disk):
    # Others leave so much that the four of them fit, and one model more: the disk is full.
    empty = os.statvfs(disk)
    size = empty.f_blocks * empty.f_frsize
    limit = 225 * MB
    with open(disk / "others", "wb") as others:
        os.posix_fallocate(others.fileno(), 0, empty.f_bavail * empty.f_frsize - size // 20 - limit)
    names = list(fleet)
    pinned, leased, flood = names[2], names[3], names[4:]
    confirmed = models.copy(fleet["org/m0"], folder / "root/m")
    source = origin(root=folder / "root")
    mounted = cache(names=names[2:], capacity="90%")
    mounted.cli("add", "org/m", source.url("m/"))
    mounted.wait("org/m")
    mounted.cli("confirm", "org/m")
    mounted.cli("pin", pinned, "--for", "1h", "--owner", "somebody")
    mounted.cli("lease", "put", "job", leased, "--for", "1h")
    for name in (pinned, leased):
        settled(mounted, name)
    with watch(disk) as disk_use, Holders(mounted.mount / "org/m", confirmed, 8) as holders:
        shutil.rmtree(folder / "root/m")
        current = models.copy(fleet["org/m1"], folder / "root/m")
        mounted.cli("update", "org/m")
        for name in 2 * flood:
            assert consume(mounted, name, "flood", held=len(confirmed.shards)) == right(fleet[name])
            mounts.drop_caches()
            holders.check()
        assert consume(mounted, "org/m", "reader", held=len(confirmed.shards)) == right(current)
        model = mounted.model("org/m")
        assert model["complete"] and model["rollback"] == "ready"
        assert complete(mounted, pinned) and complete(mounted, leased)
    of = os.statvfs(disk)
    reserved = (of.f_bfree - of.f_bavail) * of.f_frsize
    assert disk_use.samples > 10
    assert disk_use.most <= size - reserved - size // 20 + MB, "min_free holds; the index may have a little more"
    policy = mounted.status()["policy"]
    assert policy["evictions"] >= 4 and policy["used"] <= policy["limit"] <= limit + MB

    # Nothing holds them any more, and they go in their turn.
    mounted.cli("confirm", "org/m")
    mounted.cli("unpin", pinned)
    mounted.cli("lease", "rm", "job")
    for name in flood:
        mounted.wait(name)
        assert complete(mounted, name)
    assert not complete(mounted, pinned)
    until(lambda: mounted.status()["store"]["evicted_open_bytes"] == 0, 10, "the space is back")
