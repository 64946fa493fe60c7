# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""What a complete model looks like through the mount, in both modes: names, bytes, attributes, calls."""

import ctypes
import errno
import fcntl
import hashlib
import mmap
import os
import pathlib
import socket
import stat
import subprocess
import threading

import pytest

import models
import mounts
from readers import BLOCK, error_of, read_at, read_direct, same_file, same_tree

pytestmark = pytest.mark.short
NAME = "org/small"
SHARD = "model-00002-of-00004.safetensors"


@pytest.fixture
def tree(warm):
    return warm.mount / NAME


def walk(folder):
    return sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*")
                  if path.is_file())


# ---- names

def test_every_file_is_listed_and_has_the_right_bytes(tree, small):
    assert walk(tree) == sorted(small.files)
    same_tree(tree, small)


def test_the_root_lists_organisations_and_they_list_models(warm):
    assert os.listdir(warm.mount) == ["org"]
    assert os.listdir(warm.mount / "org") == ["small"]


def test_a_revision_is_looked_up_but_not_listed(warm, small):
    revision = warm.model(NAME)["revision"]
    same_tree(warm.mount / f"{NAME}@{revision}", small)
    assert os.listdir(warm.mount / "org") == ["small"]
    assert error_of(os.stat, warm.mount / f"{NAME}@0123456789abcdef") == errno.ENOENT


def test_a_snapshot_is_found_by_its_id(warm, small):
    identity = warm.model(NAME)["snapshot"]
    assert len(identity) == 64
    same_tree(warm.mount / ".snapshots" / identity, small)
    assert error_of(os.stat, warm.mount / ".snapshots" / ("0" * 64)) == errno.ENOENT


def test_what_is_not_there_is_enoent_and_asks_no_network(warm, tree, nginx):
    before = len(nginx.requests())
    for path in (warm.mount / "nobody", warm.mount / "org/nothing", tree / "pytorch_model.bin",
                 tree / "1_Pooling/none", tree / "config.json.lock"):
        assert error_of(os.stat, path) == errno.ENOENT
    assert error_of(os.stat, tree / "config.json/x") == errno.ENOTDIR
    assert len(nginx.requests()) == before


def test_names_at_the_limit_are_told_apart_from_too_long_ones(tree):
    assert error_of(os.stat, tree / ("x" * 255)) == errno.ENOENT
    assert error_of(os.stat, tree / ("x" * 1025)) == errno.ENAMETOOLONG


def test_readdir_with_attributes_agrees_with_stat(tree, small):
    for folder in (tree, tree / "1_Pooling"):
        with os.scandir(folder) as entries:
            for entry in entries:
                assert entry.inode() == os.stat(entry.path).st_ino
                assert entry.is_dir() == os.path.isdir(entry.path)
    output = subprocess.run(["ls", "-lR", str(tree)], capture_output=True, text=True, check=True).stdout
    assert all(pathlib.Path(name).name in output for name in small.files)


def test_a_directory_can_be_read_again_after_rewinding(tree):
    descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        first = sorted(os.listdir(descriptor))
        assert sorted(os.listdir(descriptor)) == first
    finally:
        os.close(descriptor)


# ---- attributes

def test_files_and_folders_are_read_only_for_everyone(tree, small):
    for name, file in small.files.items():
        found = os.stat(tree / name)
        assert stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o444
        assert found.st_size == file.size
        assert found.st_mtime == file.mtime
    folder = os.stat(tree / "1_Pooling")
    assert stat.S_ISDIR(folder.st_mode) and stat.S_IMODE(folder.st_mode) == 0o555


def test_blocks_of_a_complete_file_are_what_is_on_disk(warm, tree, small):
    blob = warm.blob(small.files[SHARD].sha256)
    on_disk = os.stat(blob).st_blocks
    assert abs(os.stat(tree / SHARD).st_blocks - on_disk) * 512 <= BLOCK
    assert on_disk * 512 >= small.files[SHARD].size


def test_inode_numbers_are_unique_within_the_tree(tree, small):
    numbers = {os.stat(tree / name).st_ino for name in small.files}
    assert len(numbers) == len(small.files)


def test_inodes_and_mtimes_are_the_same_after_a_restart_and_on_another_node(weightfs, small, nginx):
    def look(instance):
        root = instance.mount / NAME
        return {name: (found.st_ino, found.st_mtime_ns, found.st_mode)
                for name in [*small.files, "1_Pooling", "."] for found in [os.stat(root / name)]}
    one = weightfs({NAME: nginx.url("small/")})
    cold = look(one)
    one.wait(NAME)
    warm = look(one)
    one.stop()
    one.start()
    assert look(one) == warm == cold
    other = weightfs({"another/model": nginx.url("large/"), NAME: nginx.url("small/")})
    assert look(other) == cold


def test_the_snapshot_id_is_the_same_from_another_kind_of_source(weightfs, small, warm, folder):
    plain = models.copy(small, folder / "plain")
    (plain.folder / "weightfs.json").unlink()
    other = weightfs({NAME: f"file://{plain.folder}"})
    other.wait(NAME)
    assert other.model(NAME)["snapshot"] == warm.model(NAME)["snapshot"]


def test_statfs_tells_the_truth_about_the_disk_of_the_store(warm):
    told, real = os.statvfs(warm.mount), os.statvfs(warm.store)
    assert told.f_frsize * told.f_blocks == real.f_frsize * real.f_blocks
    assert abs(told.f_frsize * told.f_bavail - real.f_frsize * real.f_bavail) < 256 << 20
    assert told.f_flag & os.ST_RDONLY
    assert told.f_namemax == 255


def test_extended_attributes_give_digest_source_and_residency(warm, tree, small, nginx):
    names = os.listxattr(tree / SHARD)
    assert {"user.weightfs.digest", "user.weightfs.source"} <= set(names)
    values = {name.removeprefix("user.weightfs."): os.getxattr(tree / SHARD, name).decode()
              for name in names if name.startswith("user.weightfs.")}
    assert small.files[SHARD].sha256 in values["digest"]
    assert f"127.0.0.1:{nginx.port}" in values["source"]
    assert int(values["resident"]) == small.files[SHARD].size
    assert "pinned" in values
    assert error_of(os.getxattr, tree / SHARD, "user.weightfs.nonsense") == errno.ENODATA
    assert error_of(os.getxattr, tree / SHARD, "security.selinux") in (errno.ENODATA, errno.EOPNOTSUPP)


def test_mount_options_and_read_ahead(warm):
    row, = mounts.at(warm.mount)
    assert row["kind"].startswith("fuse")
    assert {"ro", "nosuid", "nodev", "allow_other", "default_permissions"} <= row["options"]
    ahead = pathlib.Path(f"/sys/class/bdi/{row['device']}/read_ahead_kb").read_text()
    assert int(ahead) >= 1024


def test_an_executable_of_the_manifest_is_executable(weightfs, folder, origin):
    source = folder / "tree/tool"
    source.mkdir(parents=True)
    (source / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "run.sh").chmod(0o755)
    (source / "data.txt").write_text("x")
    models.describe(source)
    mounted = weightfs({"org/tool": origin(root=folder / "tree").url("tool/")})
    assert stat.S_IMODE(os.stat(mounted.mount / "org/tool/run.sh").st_mode) == 0o555
    assert stat.S_IMODE(os.stat(mounted.mount / "org/tool/data.txt").st_mode) == 0o444
    assert subprocess.run([mounted.mount / "org/tool/run.sh"], capture_output=True,
                          text=True, check=True).stdout == "ran\n"


def test_any_user_can_read(tree, small):
    done = subprocess.run(["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "sha256sum",
                           str(tree / SHARD)], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == small.files[SHARD].sha256


# ---- writing

def test_every_way_of_writing_is_erofs(tree):
    file, link = tree / "config.json", tree / "new"
    calls = {
        "open for writing": lambda: os.open(file, os.O_WRONLY),
        "open for both": lambda: os.open(file, os.O_RDWR),
        "open with truncation": lambda: os.open(file, os.O_WRONLY | os.O_TRUNC),
        "create": lambda: os.open(link, os.O_WRONLY | os.O_CREAT),
        "mkdir": lambda: os.mkdir(link),
        "mknod": lambda: os.mknod(link),
        "symlink": lambda: os.symlink("x", link),
        "link": lambda: os.link(file, link),
        "unlink": lambda: os.unlink(file),
        "rmdir": lambda: os.rmdir(tree / "1_Pooling"),
        "rename": lambda: os.rename(file, link),
        "chmod": lambda: os.chmod(file, 0o777),
        "chown": lambda: os.chown(file, 1, 1),
        "utime": lambda: os.utime(file),
        "truncate": lambda: os.truncate(file, 0),
        "setxattr": lambda: os.setxattr(file, "user.x", b"x"),
        "removexattr": lambda: os.removexattr(file, "user.weightfs.digest"),
        "access for writing": lambda: None if os.access(file, os.W_OK) else os.mkdir(link),
    }
    assert {name: error_of(call) for name, call in calls.items()} == dict.fromkeys(calls, errno.EROFS)


# ---- ways of reading

def test_positioned_reads_at_odd_places(tree, small):
    data = small.data(SHARD)
    for offset, length in [(0, 1), (1, 1), (4095, 2), (65535, 3), (len(data) - 1, 1), (123457, 999_999),
                           (len(data) - 5, 100), (len(data), 10), (len(data) + 4096, 10)]:
        assert read_at(tree / SHARD, offset, length) == data[offset:offset + length]


def test_direct_reads(tree, small):
    data = small.data(SHARD)
    tail = len(data) // BLOCK * BLOCK
    assert read_direct(tree / SHARD, 0, 1 << 20) == data[:1 << 20]
    assert read_direct(tree / SHARD, 3 * BLOCK, 5 * BLOCK) == data[3 * BLOCK:8 * BLOCK]
    assert read_direct(tree / SHARD, tail, BLOCK) == data[tail:]


@pytest.mark.parametrize("flags", [mmap.MAP_SHARED, mmap.MAP_PRIVATE])
def test_mapping(tree, small, flags):
    data = small.data(SHARD)
    with open(tree / SHARD, "rb") as file, mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ) as view:
        assert view[:] == data
        view.madvise(mmap.MADV_WILLNEED)
        assert view[-1] == data[-1]


def test_a_private_mapping_can_be_written_and_the_file_does_not_change(tree, small):
    with open(tree / SHARD, "rb") as file, mmap.mmap(
            file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as view:
        view[:4] = b"\xff\xfe\xfd\xfc"
        assert view[:4] == b"\xff\xfe\xfd\xfc"
    assert same_file(tree / SHARD, small.path(SHARD))


def test_a_mapping_outlives_its_descriptor(tree, small):
    descriptor = os.open(tree / SHARD, os.O_RDONLY)
    view = mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ)
    os.close(descriptor)
    assert hashlib.sha256(view).hexdigest() == small.files[SHARD].sha256
    view.close()


def test_sendfile_to_a_socket(tree, small):
    size = small.files[SHARD].size
    left, right = socket.socketpair()
    received = hashlib.sha256()

    def receive():
        while data := right.recv(1 << 20):
            received.update(data)

    thread = threading.Thread(target=receive)
    thread.start()
    with open(tree / SHARD, "rb") as file, left:
        sent = 0
        while sent < size:
            sent += os.sendfile(left.fileno(), file.fileno(), sent, size - sent)
    thread.join(30)
    right.close()
    assert received.hexdigest() == small.files[SHARD].sha256


def test_splice_to_a_pipe(tree, small):
    libc = ctypes.CDLL(None, use_errno=True)
    data, output = small.data(SHARD), bytearray()
    reading, writing = os.pipe()
    source = os.open(tree / SHARD, os.O_RDONLY)
    try:
        while len(output) < len(data):
            count = libc.splice(source, None, writing, None, ctypes.c_size_t(65536), 0)
            assert count > 0, os.strerror(ctypes.get_errno())
            output += os.read(reading, count)
    finally:
        for descriptor in (reading, writing, source):
            os.close(descriptor)
    assert output == data


def test_copies_by_cp_and_by_copy_file_range_fallbacks(tree, small, folder):
    subprocess.run(["cp", "-r", str(tree), str(folder / "copy")], check=True)
    same_tree(folder / "copy", small)


def test_flock_shared_and_exclusive(tree):
    with open(tree / "config.json", "rb") as one, open(tree / "config.json", "rb") as two:
        fcntl.flock(one, fcntl.LOCK_SH)
        fcntl.flock(two, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(two, fcntl.LOCK_UN)
        fcntl.flock(one, fcntl.LOCK_EX)
        assert error_of(fcntl.flock, two, fcntl.LOCK_SH | fcntl.LOCK_NB) == errno.EWOULDBLOCK


def test_advice_does_no_harm(tree, small):
    descriptor = os.open(tree / SHARD, os.O_RDONLY)
    try:
        for advice in (os.POSIX_FADV_WILLNEED, os.POSIX_FADV_SEQUENTIAL, os.POSIX_FADV_RANDOM,
                       os.POSIX_FADV_DONTNEED):
            os.posix_fadvise(descriptor, 0, 0, advice)
        assert os.pread(descriptor, 100, 4096) == small.data(SHARD)[4096:4196]
    finally:
        os.close(descriptor)


def test_seeking_to_the_end_and_to_data(tree, small):
    size = small.files[SHARD].size
    with open(tree / SHARD, "rb") as file:
        assert os.lseek(file.fileno(), 0, os.SEEK_END) == size
        assert os.lseek(file.fileno(), 0, os.SEEK_DATA) == 0
        assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) == size


def test_many_descriptors_of_one_file(tree, small):
    descriptors = [os.open(tree / SHARD, os.O_RDONLY) for _ in range(200)]
    data = small.data(SHARD)
    for number, descriptor in enumerate(descriptors):
        assert os.pread(descriptor, 10, number * 1000) == data[number * 1000:number * 1000 + 10]
        os.close(descriptor)
