# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A pod in a box (pod.py) loads before, during and after restarts and after a full remount."""

import errno
import json
import pathlib
import subprocess
import tempfile

import pytest

import mounts
from consumer import load
from pod import Pod
from waiting import until

NAME = "org/small"
pytestmark = pytest.mark.short


@pytest.fixture
def shared():
    """The folder that a hostPath volume would name: a shared mount, with the mount point below it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="wfs-pod-"))
    folder.chmod(0o755)
    with mounts.tmpfs(folder, "1m"):
        subprocess.run(["mount", "--make-shared", str(folder)], check=True)
        (folder / "models").mkdir()
        yield folder
        mounts.detach_below(folder)
    folder.rmdir()


@pytest.fixture
def expected(small):
    return {name: file.sha256 for name, file in small.files.items()}


def test_a_pod_is_what_it_should_be(shared, folder):
    with Pod(shared, folder / "inside") as pod:
        who = pod.ask(do="who")
        assert who["uid"] == 1000
        assert who["pid"] < 10
        assert all(line.endswith(":/") for line in who["cgroup"].splitlines() if line.startswith("0:"))


def test_a_pod_loads_before_during_and_after_a_restart_of_the_daemon(weightfs, origin, shared, folder, small,
                                                                     expected, mode):
    mounted = weightfs({NAME: origin(rate=4 << 20).url("small/")}, mount=shared / "models",
                       passthrough=mode == "passthrough")
    with Pod(shared, folder / "inside") as pod:
        tree = str(pod.inside / "models" / NAME)
        assert pod.ask(do="load", folder=tree) == expected, "cold, before"
        mounted.wait(NAME)
        name = small.shards[0]
        pod.ask(do="hold", path=f"{tree}/{name}")
        for _ in range(5):
            pod.send(do="load", folder=tree)
            old = mounted.kill_daemon()
            assert pod.receive() == expected, "during"
            mounted.wait_new_daemon(old)
            mounts.drop_caches()
            assert pod.ask(do="held") == {"read": expected[name], "mapped": expected[name]}
        assert pod.ask(do="load", folder=tree) == expected, "after"


def test_a_cold_load_goes_on_over_restarts(weightfs, origin, shared, folder, expected, mode):
    mounted = weightfs({NAME: origin(rate=128 << 10).url("small/")}, mount=shared / "models",
                       passthrough=mode == "passthrough")
    with Pod(shared, folder / "inside") as pod:
        pod.send(do="load", folder=str(pod.inside / "models" / NAME))
        for _ in range(3):
            old = mounted.kill_daemon()
            mounted.wait_new_daemon(old)
        assert pod.receive() == expected


def test_a_pod_sees_a_full_remount(weightfs, nginx, shared, folder, expected, mode):
    mounted = weightfs({NAME: nginx.url("small/")}, mount=shared / "models",
                       passthrough=mode == "passthrough")
    with Pod(shared, folder / "inside") as pod:
        tree = str(pod.inside / "models" / NAME)
        assert pod.ask(do="load", folder=tree) == expected
        mounted.stop()
        assert pod.ask(do="load", folder=tree)["errno"] == errno.ENOENT
        mounted.start()
        assert pod.ask(do="load", folder=tree) == expected


def test_a_pod_sees_the_mount_that_replaces_a_dead_one(weightfs, nginx, shared, folder, expected):
    mounted = weightfs({NAME: nginx.url("small/")}, mount=shared / "models")
    mounted.wait(NAME)
    with Pod(shared, folder / "inside") as pod:
        tree = str(pod.inside / "models" / NAME)
        assert pod.ask(do="load", folder=tree) == expected
        mounted.kill_all()
        # The connection ends when the last of its holders is gone, a moment after the kill.
        until(lambda: pod.ask(do="load", folder=tree)["errno"] == errno.ENOTCONN, 10, "a dead mount")
        mounted.start()
        assert pod.ask(do="load", folder=tree) == expected


def test_a_pod_started_before_the_mount_sees_it_come(weightfs, nginx, shared, folder, expected):
    with Pod(shared, folder / "inside") as pod:
        tree = str(pod.inside / "models" / NAME)
        assert pod.ask(do="load", folder=tree)["errno"] == errno.ENOENT
        mounted = weightfs({NAME: nginx.url("small/")}, mount=shared / "models")
        until(lambda: pod.ask(do="load", folder=tree) == expected, 10, "the mount propagates")
        assert mounted.status()["pid"]


def test_readers_whom_the_daemon_cannot_see_are_one_consumer(weightfs, nginx, expected):
    """A daemon in a pid namespace of its own is told no pid of those outside."""
    mounted = weightfs({NAME: nginx.url("small/")}, start=False, options=["--deployment", "eu-1/chat"])
    inside = ["unshare", "--pid", "--fork", "--kill-child"]
    with open(mounted.log, "ab") as log:
        daemon = subprocess.Popen(inside + mounted.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: mounted.cli("status", check=False).returncode == 0, 30, "weightfs is ready")
        assert load(str(mounted.mount / NAME)) == expected
        events = [json.loads(line) for line in mounted.cli("events", "--json").stdout.splitlines()]
        assert {event["consumer"] for event in events if event["event"] == "miss"} == {"eu-1/chat"}
        mounted.cli("unmount")
        assert daemon.wait(20) == 0
    finally:
        daemon.kill()
        daemon.wait()
