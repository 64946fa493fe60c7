# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""file:// sources: large files by parallel reads, and by reflink where the filesystem has that."""

import contextlib
import os
import subprocess

import pytest

import models
import mounts
from readers import Readers, same_tree
from waiting import until

MIB = 1 << 20
NAME = "org/model"
PART = 8 * MIB


# ---- the same filesystem as the store

@pytest.fixture
def reflinks(folder):
    """A disk with reflinks. A kernel that has no such filesystem is the one reason to skip."""
    if not mounts.kernel_has("xfs"):
        pytest.skip(f"kernel {os.uname().release} has no xfs")
    with mounts.xfs(folder, 400) as disk:
        yield disk


def used(disk):
    os.sync()
    about = os.statvfs(disk)
    return (about.f_blocks - about.f_bfree) * about.f_frsize


def shared_extents(path):
    """How many extents the file has, and how many of them are another file's, too (FIEMAP)."""
    done = subprocess.run(["filefrag", "-v", str(path)], capture_output=True, text=True, check=True)
    extents = [line for line in done.stdout.splitlines() if line.split(":")[0].strip().isdecimal()]
    return len(extents), sum("shared" in line for line in extents)


@pytest.mark.short
def test_on_the_same_filesystem_a_model_comes_by_reflink_and_takes_no_space(weightfs, reflinks, mode):
    model = models.write_model(reflinks / "plain", 4, 16 * MIB, seed=7)
    (model.folder / "weightfs.json").unlink()  # a tree as it stands
    mounted = weightfs({NAME: f"file://{model.folder}"}, store=reflinks / "store",
                       passthrough=mode == "passthrough")
    before = used(reflinks)
    mounted.wait(NAME)
    assert mounted.blobs() == {file.sha256 for file in model.files.values()}
    for name in model.shards:
        extents, shared = shared_extents(mounted.blob(model.files[name].sha256))
        assert extents == shared > 0, f"{name} was copied"
    assert used(reflinks) - before < model.size // 8  # the index
    assert mounted.status()["source"]["bytes"] < MIB, "the source was read"
    same_tree(mounted.mount / NAME, model)
    mounted.cli("verify", NAME)
    # A blob is no second name of the source's file: what is written there later is not in it.
    with open(model.path(model.shards[0]), "r+b") as file:
        file.write(b"another")
    mounted.cli("verify", NAME)


# ---- another filesystem: parallel reads

@pytest.fixture
def store(folder):
    """Where nothing can be cloned to from the models' filesystem."""
    (folder / "one").write_text("content")
    clones = subprocess.run(["cp", "--reflink=always", str(folder / "one"), str(folder / "two")],
                            check=False, capture_output=True).returncode == 0
    with mounts.ext4(folder, 1600) if clones else contextlib.nullcontext(folder) as place:
        yield place / "store"


def test_64_processes_read_one_cold_local_file_and_each_byte_is_read_once(
        weightfs, folder, store, large, mode):
    shard = large.shards[1]
    size = large.files[shard].size
    (folder / "plain").mkdir()
    os.link(large.path(shard), folder / "plain" / shard)
    mounted = weightfs({NAME: f"file://{folder}/plain"}, store=store, passthrough=mode == "passthrough")
    with Readers(mounted.mount / NAME, large.folder, [shard], ["mixed"] * 64, count=20) as readers:
        readers.finish(150)
    until(lambda: large.files[shard].sha256 in mounted.blobs(), 60, "the shard is complete")
    source = mounted.status()["source"]
    assert source["bytes"] == size
    assert source["requests"] > size // PART


@pytest.mark.seconds(600)
def test_the_daemon_killed_during_local_fills_under_readers(weightfs, folder, origin, large, mode):
    """The source is a directory that is slow enough to be in the middle of at every kill: a mount."""
    slow = origin(rate=64 << 10)
    source = weightfs({NAME: slow.url("large/")})
    mounted = weightfs({NAME: f"file://{source.mount / NAME}"}, passthrough=mode == "passthrough")
    mounted.cli("warm", NAME)
    with Readers(mounted.mount / NAME, large.folder, large.shards, ["mixed"] * 8,
                 until=folder / "stop") as readers:
        readers.wait_all_open()
        for _ in range(5):
            mounted.wait_new_daemon(mounted.kill_filling_daemon())
        slow.restart(rate=None)
        results = readers.finish(60, [source, mounted])
    assert all(result["reads"] > 0 for result in results)
    mounted.wait(NAME)
    assert mounted.blobs() == {file.sha256 for file in large.files.values()}
    mounted.cli("verify", NAME)
    same_tree(mounted.mount / NAME, large, large.shards)
