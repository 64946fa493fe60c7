# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Processes that die at the wrong moment: no wrong byte, no failed read, no mount left behind."""

import errno
import mmap
import os
import random
import signal
import subprocess
import sys
import time

import pytest

import mounts
import processes
from daemon import StartError
from readers import Readers, error_of, read_at, same_tree
from waiting import until

NAME = "org/model"
KILLS = 50


@pytest.mark.seconds(600)
def test_the_daemon_killed_50_times_during_fills_under_readers(weightfs, origin, large, mode, folder):
    """Readers never fail and never see a wrong byte; when it is over the store is intact."""
    source = origin(rate=64 << 10)  # so slow that not one shard is complete before the last kill
    mounted = weightfs({NAME: source.url("large/")}, passthrough=mode == "passthrough")
    mounted.cli("warm", NAME)
    keeper, pauses = mounted.keeper_pid, random.Random(50)
    with Readers(mounted.mount / NAME, large.folder, large.shards, ["mixed"] * 8,
                 until=folder / "stop") as readers:
        readers.wait_all_open()
        for number in range(KILLS):
            old = mounted.kill_filling_daemon()
            status = mounted.wait_new_daemon(old)
            assert status["keeper_pid"] == keeper
            time.sleep(pauses.uniform(0.05, 0.6))  # a random moment is what this is about
            assert not readers.failed(), f"after {number + 1} kills"
        assert not {large.files[name].sha256 for name in large.shards} & mounted.blobs()
        source.restart(rate=None)
        results = readers.finish(60, [mounted])
    assert all(result["reads"] > 0 for result in results)
    mounted.wait(NAME, 200)
    mounted.cli("verify", NAME)
    same_tree(mounted.mount / NAME, large)


@pytest.mark.short
@pytest.mark.stress
@pytest.mark.seconds(300)
def test_the_daemon_killed_a_few_times_under_a_small_model(weightfs, origin, small, mode, folder):
    source = origin(rate=16 << 10)
    mounted = weightfs({NAME: source.url("small/")}, passthrough=mode == "passthrough")
    with Readers(mounted.mount / NAME, small.folder, small.shards, ["mixed"] * 4,
                 until=folder / "stop") as readers:
        readers.wait_all_open()
        for _ in range(5):
            mounted.wait_new_daemon(mounted.kill_filling_daemon())
        source.restart(rate=None)
        readers.finish(60, [mounted])
    mounted.wait(NAME)
    same_tree(mounted.mount / NAME, small)


def test_a_read_that_waits_is_answered_by_the_successor(weightfs, origin, large):
    source = origin(rate=64 << 10)
    mounted = weightfs({NAME: source.url("large/")})
    shard = large.shards[2]
    path = mounted.mount / NAME / shard
    reader = subprocess.Popen(
        [sys.executable, "-c", "import hashlib, os, sys\n"
         "print(hashlib.sha256(os.pread(os.open(sys.argv[1], 0), 524288, 1048576)).hexdigest())",
         str(path)], stdout=subprocess.PIPE, text=True)
    until(lambda: mounted.status()["fills"], 10, "the read waits")
    mounted.wait_new_daemon(mounted.kill_daemon())
    output, _ = reader.communicate(timeout=60)
    assert reader.returncode == 0
    expected = subprocess.run(["sha256sum"], input=read_at(large.path(shard), 1 << 20, 512 << 10),
                              capture_output=True, check=True).stdout.split()[0].decode()
    assert output.strip() == expected


def test_open_passthrough_files_do_not_notice_a_dead_daemon(weightfs, nginx, small, mode):
    if mode != "passthrough":
        pytest.skip("about passthrough only")
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    name = small.shards[0]
    data = small.data(name)
    with open(mounted.mount / NAME / name, "rb", buffering=0) as file:
        view = mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
        old = mounted.kill_daemon(signal.SIGSTOP)  # neither alive nor replaced
        try:
            mounts.drop_caches()
            assert view[:] == data
            assert os.pread(file.fileno(), len(data), 0) == data
        finally:
            processes.kill(old, signal.SIGCONT)
        mounted.wait_new_daemon(mounted.kill_daemon())
        mounts.drop_caches()
        assert view[:] == data
        assert read_at(mounted.mount / NAME / name, 0, len(data)) == data
        view.close()


def test_opens_and_lookups_while_the_daemon_is_away_are_answered_late(weightfs, nginx, small, mode):
    mounted = weightfs({NAME: nginx.url("small/")}, passthrough=mode == "passthrough")
    mounted.wait(NAME)
    for name in small.files:
        old = mounted.kill_daemon()
        assert read_at(mounted.mount / NAME / name, 0, 1 << 22) == small.data(name)
        mounted.wait_new_daemon(old)


def test_counters_of_open_files_survive_so_that_eviction_and_unmount_work(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    name = small.shards[0]
    with open(mounted.mount / NAME / name, "rb") as file:
        mounted.wait_new_daemon(mounted.kill_daemon())
        assert file.read() == small.data(name)
    mounted.cli("evict", NAME)
    until(lambda: not mounted.blobs(), 10, "everything is evicted")
    same_tree(mounted.mount / NAME, small)


def test_the_store_has_no_lost_commit_after_everything_was_killed(weightfs, nginx, small, mode):
    mounted = weightfs({NAME: nginx.url("small/")}, passthrough=mode == "passthrough")
    mounted.wait(NAME)
    complete = mounted.blobs()
    mounted.kill_all()
    mounted.start()
    assert mounted.blobs() == complete
    assert mounted.status()["store"]["blobs"] == len(complete)
    same_tree(mounted.mount / NAME, small)
    mounted.cli("verify", NAME)


# ---- the keeper, and what it leaves

def test_a_stale_mount_left_by_a_dead_keeper_is_replaced(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    mounted.kill_all()
    # The connection ends when the last of its holders is gone, a moment after the kill.
    until(lambda: error_of(os.listdir, mounted.mount) == errno.ENOTCONN, 10, "a dead mount")
    assert len(mounts.at(mounted.mount)) == 1
    mounted.start()
    assert len(mounts.at(mounted.mount)) == 1
    same_tree(mounted.mount / NAME, small)


def test_the_daemon_ends_when_its_keeper_is_killed(weightfs, nginx):
    mounted = weightfs({NAME: nginx.url("small/")})
    status = mounted.status()
    processes.kill(status["keeper_pid"])
    processes.wait_gone(status["pid"], 20, "the daemon without a keeper")
    mounted.kill_all()


def test_a_mount_point_that_is_missing_or_no_directory_is_a_clear_error(weightfs, folder):
    (folder / "file").write_text("")
    for mount, code in ((folder / "missing", 3), (folder / "file", 1)):  # not found; failed
        mounted = weightfs({}, start=False, mount=mount)
        with pytest.raises(StartError) as caught:
            mounted.start()
        assert caught.value.code == code
        assert str(mount) in caught.value.text


def test_a_mount_point_that_is_already_ours_is_a_clear_error_and_stays(weightfs, nginx, small):
    first = weightfs({NAME: nginx.url("small/")})
    second = weightfs({NAME: nginx.url("small/")}, start=False, mount=first.mount)
    with pytest.raises(StartError) as caught:
        second.start()
    assert caught.value.code == 1
    assert str(first.mount) in caught.value.text
    same_tree(first.mount / NAME, small)
    second.mount = second.home / "none"  # so that its cleaning up leaves the other's mount alone


def test_unmounting_by_hand_ends_both_processes(weightfs, nginx):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.status()
    subprocess.run(["umount", str(mounted.mount)], check=True)
    mounted.wait_stopped()


def test_unmount_ends_both_processes_and_refuses_while_busy(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    with open(mounted.mount / NAME / "config.json", "rb") as file:
        busy = mounted.cli("unmount", check=False)
        assert busy.returncode == 1
        assert "busy" in busy.stderr.lower()
        assert file.read() == small.data("config.json")
    mounted.cli("unmount")
    mounted.wait_stopped()


def test_the_daemon_has_no_privileges_and_the_keeper_no_network(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    status = mounted.status()
    uid = processes.status_field(status["pid"], "Uid").split()
    assert "0" not in uid
    for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(processes.status_field(status["pid"], kind), 16) == 0
    assert processes.status_field(status["pid"], "NoNewPrivs") == "1"
    sockets = [os.readlink(f"/proc/{status['keeper_pid']}/fd/{name}")
               for name in os.listdir(f"/proc/{status['keeper_pid']}/fd")]
    inodes = {link[8:-1] for link in sockets if link.startswith("socket:")}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with open(f"/proc/net/{table}") as file:
            assert not inodes & {line.split()[9] for line in file.readlines()[1:]}


def test_a_killed_daemon_that_hangs_in_its_source_is_replaced(weightfs, origin, nginx, small, mode):
    """A source that is a filesystem can hang, and a process that waits in it cannot die: its end
    never comes, and its locks stay. Here it is another weightfs whose daemon is stopped."""
    slow = origin(rate=32 << 10)
    source = weightfs({NAME: slow.url("small/")})
    shard = small.shards[0]
    mounted = weightfs({"org/hung": f"file://{source.mount / NAME}", NAME: nginx.url("small/")},
                       passthrough=mode == "passthrough")
    hanging = mounted.pid
    reader = subprocess.Popen([sys.executable, "-c", "import sys\n"
                               "sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())",
                               str(mounted.mount / "org/hung" / shard)], stdout=subprocess.PIPE)
    until(lambda: any(fill["path"] == shard and fill["parked"] > 0 for fill in source.status()["fills"]),
          20, "the source has taken a read and has not answered it")
    stopped = source.pid
    os.kill(stopped, signal.SIGSTOP)
    try:
        mounted.wait_new_daemon(mounted.kill_daemon())
        assert processes.state(hanging) == "Z", "nothing hung"
        same_tree(mounted.mount / NAME, small)
        assert reader.poll() is None
    finally:
        os.kill(stopped, signal.SIGCONT)
        slow.restart(rate=None)
    output, _ = reader.communicate(timeout=120)
    assert output == small.path(shard).read_bytes()
    processes.wait_gone(hanging, 30, "the daemon that hung")
