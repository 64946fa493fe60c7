# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Who serves the bytes: the kernel where a file is complete, the daemon everywhere else."""

import mmap
import os

import pytest

import mounts
from readers import BLOCK, Readers, read_at, read_direct, same_file, same_tree
from waiting import until

pytestmark = pytest.mark.short
NAME = "org/small"
SHARD = "model-00001-of-00004.safetensors"


@pytest.fixture
def passing(warm_mount, mode):
    if mode != "passthrough":
        pytest.skip("about passthrough only")
    return warm_mount(mode)


def test_status_says_which_mode_is_active_and_why(warm, mode):
    status = warm.status()["passthrough"]
    if mode == "passthrough":
        assert status["active"] is True
    else:
        assert status["active"] is False
        assert status["reason"]


def test_no_read_reaches_the_daemon_while_a_complete_model_is_read(passing, small):
    before = passing.reads()
    same_tree(passing.mount / NAME, small)
    mounts.drop_caches()
    same_tree(passing.mount / NAME, small)
    path = passing.mount / NAME / SHARD
    read_direct(path, 0, 16 * BLOCK)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as view:
        assert len(view[:]) == small.files[SHARD].size
    with Readers(passing.mount / NAME, small.folder, small.shards, ["mixed"] * 6, count=50) as readers:
        readers.finish(60)
    assert passing.reads() == before


def test_opens_are_counted_and_a_hit_once_per_consumer_and_file(weightfs, nginx, mode):
    mounted = weightfs({NAME: nginx.url("small/")}, passthrough=mode == "passthrough")
    mounted.wait(NAME)
    before = mounted.status()
    for _ in range(5):
        read_at(mounted.mount / NAME / SHARD, 0, 10)
    after = mounted.status()
    assert after["fuse"]["opens"] - before["fuse"]["opens"] == 5
    assert after["cache"]["hits"] - before["cache"]["hits"] == 1
    size = os.stat(mounted.mount / NAME / SHARD).st_size
    assert after["cache"]["hit_bytes"] - before["cache"]["hit_bytes"] == size
    assert after["cache"]["misses"] == before["cache"]["misses"]


def test_without_passthrough_the_second_read_comes_from_the_page_cache(warm_mount, small):
    served = warm_mount("served")
    path = served.mount / NAME / SHARD
    same_file(path, small.path(SHARD))
    before = served.reads()
    assert same_file(path, small.path(SHARD))
    assert served.reads() - before <= 2


def test_served_reads_are_large(warm_mount, small):
    served = warm_mount("served")
    name = small.shards[3]
    mounts.drop_caches()
    before = served.reads()
    assert same_file(served.mount / NAME / name, small.path(name))
    reads = served.reads() - before
    assert 0 < reads <= small.files[name].size // (128 << 10) + 4


def test_a_handle_opened_while_filling_goes_on_after_completion(weightfs, origin, small, mode):
    source = origin(rate=256 << 10)
    mounted = weightfs({NAME: source.url("small/")}, passthrough=mode == "passthrough")
    path = mounted.mount / NAME / SHARD
    descriptor = os.open(path, os.O_RDONLY)
    view = mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ)
    data = small.data(SHARD)
    assert os.pread(descriptor, 100, 1 << 20) == data[1 << 20:(1 << 20) + 100]
    identity = os.fstat(descriptor).st_ino
    mounted.wait(NAME)
    # Both views of the file are one file to whoever looks.
    assert os.stat(path).st_ino == identity
    assert os.pread(descriptor, len(data), 0) == data
    assert view[:] == data
    with open(path, "rb") as file:
        before = mounted.reads()
        assert file.read() == data
        if mode == "passthrough":
            assert mounted.reads() == before
    view.close()
    os.close(descriptor)


def test_the_name_leads_to_the_complete_file_soon_after_completion(weightfs, origin, small, mode):
    """Without closing anything: the name of a file that fills is looked up at every open."""
    if mode != "passthrough":
        pytest.skip("about passthrough only")
    mounted = weightfs({NAME: origin().url("small/")})
    path = mounted.mount / NAME / SHARD
    with open(path, "rb") as held:
        held.read(1)
        mounted.wait(NAME)

        def kernel_serves():
            mounts.drop_caches()
            before = mounted.reads()
            same_file(path, small.path(SHARD))
            return mounted.reads() == before

        until(kernel_serves, 10, "a new open is passed through")


def test_an_evicted_file_shows_no_blocks_at_once_and_its_next_open_fetches_it(weightfs, origin, small, mode):
    """The kernel believes in the node for ever: it is told about the attributes, and OPEN is ESTALE."""
    mounted = weightfs({NAME: origin().url("small/")}, passthrough=mode == "passthrough")
    path = mounted.mount / NAME / SHARD
    mounted.wait(NAME)
    same_file(path, small.path(SHARD))
    assert os.stat(path).st_blocks > 0
    with open(path, "rb") as held:
        mounted.cli("evict", NAME)
        assert os.stat(path).st_blocks == 0
        same_file(path, small.path(SHARD))
        assert held.read() == small.data(SHARD)
    same_file(path, small.path(SHARD))
