# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Wrong bytes, from the source and from the disk: never published, never passed through."""

import errno
import mmap
import os
import time

import pytest

import hostile
import models
import processes
from readers import error_of, read_at, same_tree
from waiting import until

MIB = 1 << 20
NAME = "org/model"
FILE = "w.safetensors"
CONTENT = b"".join(models.noise("verify", 6 * MIB))
pytestmark = pytest.mark.short


@pytest.fixture
def source():
    with hostile.HostileOrigin(models.served("m", {FILE: CONTENT})) as origin:
        yield origin


def whole(path):
    """As a program reads a file: until its end, so that an error behind a short read is met."""
    with open(path, "rb", buffering=0) as file:
        parts = []
        while part := file.read(MIB):
            parts.append(part)
        return b"".join(parts)


def quarantined(mounted):
    return [path for path in (mounted.store / "quarantine").rglob("*") if path.is_file()]


# ---- from the source

@pytest.mark.parametrize("verify", ["stream", "strict"])
def test_a_wrong_digest_is_an_error_and_is_not_published(weightfs, source, mode, verify):
    source.faults[f"m/{FILE}"] = [hostile.flip(5 * MIB)]
    mounted = weightfs({NAME: source.url("m/")}, passthrough=mode == "passthrough",
                       options=["--verify", verify])
    path = mounted.mount / NAME / FILE
    done = mounted.cli("warm", NAME, "--wait", check=False)
    assert done.returncode == 1
    assert FILE in done.stderr + done.stdout
    assert not mounted.blobs()
    assert quarantined(mounted), "a person can look at it"
    assert error_of(whole, path) == errno.EIO
    assert "digest" in mounted.cli("why", path, check=False).stdout
    assert mounted.status()["pid"]


@pytest.mark.parametrize("verify", ["stream", "strict"])
def test_after_the_source_is_mended_the_next_open_has_the_right_bytes(weightfs, source, mode, verify):
    source.faults[f"m/{FILE}"] = [hostile.flip(MIB)]
    mounted = weightfs({NAME: source.url("m/")}, passthrough=mode == "passthrough",
                       options=["--verify", verify])
    path = mounted.mount / NAME / FILE
    mounted.cli("warm", NAME, "--wait", check=False)
    source.faults.clear()
    until(lambda: error_of(whole, path) is None, 20, "the file can be read again")
    assert whole(path) == CONTENT
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        assert view[:] == CONTENT, "poisoned pages are gone"
    mounted.wait(NAME)


def test_one_wrong_answer_is_asked_for_again(weightfs, source):
    """The first fill gets a bad byte; the digest says so and another fill mends it."""
    source.faults[f"m/{FILE}"] = [hostile.first(1, hostile.flip(100))]
    mounted = weightfs({NAME: source.url("m/")}, options=["--verify", "strict"])
    path = mounted.mount / NAME / FILE
    until(lambda: error_of(whole, path) is None, 30, "the file can be read")
    assert whole(path) == CONTENT


def test_strict_never_hands_out_a_byte_that_is_not_verified(weightfs, source):
    source.faults[f"m/{FILE}"] = [hostile.flip(6 * MIB - 1)]
    mounted = weightfs({NAME: source.url("m/")}, options=["--verify", "strict"])
    path = mounted.mount / NAME / FILE
    for offset in (0, 3 * MIB):
        assert error_of(read_at, path, offset, 4096) == errno.EIO


def test_strict_holds_a_file_until_the_whole_of_it_is_verified(weightfs, source):
    source.faults[f"m/{FILE}"] = [hostile.slow(MIB)]
    mounted = weightfs({NAME: source.url("m/")}, options=["--verify", "strict"])
    began = time.monotonic()
    assert read_at(mounted.mount / NAME / FILE, 0, 10) == CONTENT[:10]
    # 16 connections at this rate at the very best.
    assert time.monotonic() - began > 6 / 16
    assert len(mounted.blobs()) == 1


def test_stream_hands_out_bytes_as_they_come(weightfs, source):
    source.faults[f"m/{FILE}"] = [hostile.slow(MIB // 4)]
    mounted = weightfs({NAME: source.url("m/")}, options=["--verify", "stream"])
    began = time.monotonic()
    assert read_at(mounted.mount / NAME / FILE, 0, 10) == CONTENT[:10]
    assert time.monotonic() - began < 1.5
    assert not mounted.blobs()


def test_quarantine_is_bounded(weightfs, source):
    source.faults[f"m/{FILE}"] = [hostile.flip(0)]
    mounted = weightfs({NAME: source.url("m/")})
    for _ in range(12):
        mounted.cli("warm", NAME, "--wait", check=False)
    assert 0 < len(quarantined(mounted)) <= 32  # 16 files, each with a note beside it


# ---- from the disk

def damage(path, offset=12345):
    """Changes one byte and nothing else that can be seen."""
    before = os.stat(path)
    os.chmod(path, 0o644)
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x01]))
    os.chmod(path, 0o444)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_verify_finds_a_bad_blob_quarantines_it_and_the_next_open_fetches_it(weightfs, nginx, small, mode):
    mounted = weightfs({NAME: nginx.url("small/")}, passthrough=mode == "passthrough")
    mounted.wait(NAME)
    assert mounted.cli("verify", NAME).returncode == 0
    name = small.shards[1]
    digest = small.files[name].sha256
    damage(mounted.blob(digest), 1_000_000)
    done = mounted.cli("verify", NAME, check=False)
    assert done.returncode == 1
    assert name in done.stdout + done.stderr or digest in done.stdout + done.stderr
    assert digest not in mounted.blobs()
    assert quarantined(mounted)
    same_tree(mounted.mount / NAME, small)
    mounted.wait(NAME)
    assert mounted.cli("verify").returncode == 0


def test_a_blob_whose_identity_changed_is_not_served(weightfs, nginx, small, mode):
    mounted = weightfs({NAME: nginx.url("small/")}, passthrough=mode == "passthrough")
    mounted.wait(NAME)
    name = small.shards[0]
    blob = mounted.blob(small.files[name].sha256)
    damage(blob)
    os.utime(blob, (1, 1))
    assert read_at(mounted.mount / NAME / name, 0, 4 * MIB) == small.data(name)


def test_a_blob_that_was_truncated_or_removed_is_fetched_again(weightfs, nginx, small, mode):
    mounted = weightfs({NAME: nginx.url("small/")}, passthrough=mode == "passthrough")
    mounted.wait(NAME)
    one, two = small.shards[0], small.shards[1]
    blob = mounted.blob(small.files[one].sha256)
    blob.chmod(0o644)
    os.truncate(blob, 1000)
    mounted.blob(small.files[two].sha256).unlink()
    same_tree(mounted.mount / NAME, small)


@pytest.mark.parametrize("when", ["mounted", "stopped"])
@pytest.mark.parametrize("permissions", [0o000, 0o400], ids=["nobody", "root"])
def test_a_blob_that_the_daemon_may_not_read_is_fetched_again(weightfs, nginx, small, mode, permissions, when):
    """A restore or a careful administrator does that. It is a copy of no use, and no error."""
    mounted = weightfs({NAME: nginx.url("small/")}, passthrough=mode == "passthrough")
    mounted.wait(NAME)
    assert "0" not in processes.status_field(mounted.pid, "Uid").split()
    if when == "stopped":
        mounted.stop()
    blob = mounted.blob(small.files[small.shards[1]].sha256)
    os.chown(blob, 0, 0)
    blob.chmod(permissions)
    refused = blob.stat().st_ino
    if when == "stopped":
        mounted.start()
    same_tree(mounted.mount / NAME, small)
    mounted.wait(NAME)
    assert blob.stat().st_ino != refused
    assert mounted.cli("verify", NAME).returncode == 0


def test_damage_done_while_it_was_down_is_found_before_the_first_passthrough(weightfs, nginx, small, mode):
    """Only what can be seen from outside: size, mtime, inode. Silent rot is what `verify` is for."""
    mounted = weightfs({NAME: nginx.url("small/")}, passthrough=mode == "passthrough")
    mounted.wait(NAME)
    mounted.stop()
    blob = mounted.blob(small.files[small.shards[2]].sha256)
    blob.chmod(0o644)
    blob.write_bytes(b"\0" * small.files[small.shards[2]].size)
    mounted.start()
    same_tree(mounted.mount / NAME, small)


def test_a_wiped_store_loses_nothing_but_time(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    def look():
        return {name: (found.st_ino, found.st_mtime_ns, found.st_size)
                for name in small.files for found in [os.stat(mounted.mount / NAME / name)]}
    mounted.wait(NAME)
    before, files = mounted.model(NAME)["snapshot"], look()
    mounted.stop()
    for path in sorted(mounted.store.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    mounted.start()
    assert mounted.model(NAME)["snapshot"] == before
    assert look() == files
    same_tree(mounted.mount / NAME, small)
    assert look() == files


def test_the_index_is_rebuilt_from_the_files(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    mounted.stop()
    for path in mounted.store.glob("index.db*"):
        path.unlink()
    sent = nginx.sent()
    mounted.start()
    assert mounted.status()["store"]["blobs"] == len(mounted.blobs())
    same_tree(mounted.mount / NAME, small)
    assert nginx.sent() - sent < MIB


def test_a_damaged_index_is_rebuilt(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    mounted.stop()
    (mounted.store / "index.db").write_bytes(b"not a database" * 1000)
    mounted.start()
    same_tree(mounted.mount / NAME, small)
