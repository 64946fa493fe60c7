# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Readers that hold a file open while it fills: whoever waits dies at once, and what one of them has
read is never mixed with other bytes, whoever died or was wrong meanwhile."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import hostile
import models
import processes
from readers import pread_all, read_at
from waiting import until

NAME = "org/model"
MIB = 1 << 20
AT_ONCE = 2.0  # seconds: a loaded machine, not a wait
pytestmark = pytest.mark.short

READ = "import sys; open(sys.argv[1], 'rb', buffering=0).read()"
OPEN = "import os, sys; os.open(sys.argv[1], os.O_RDONLY); print('open', flush=True); sys.stdin.read()"


def start(code, path):
    return subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)


def kill_at_once(readers):
    began = time.monotonic()
    for reader in readers:
        reader.send_signal(signal.SIGKILL)
    for reader in readers:
        reader.wait(60)
    took = time.monotonic() - began
    assert took < AT_ONCE, f"killed readers lived for another {took:.1f} s"


def waits(reader):
    """It has got as far as a read, or an open, of the mount."""
    with open(f"/proc/{reader.pid}/wchan") as file:
        return "fuse" in (name := file.read()) or "folio" in name or "request_wait" in name


@pytest.mark.seconds(120)
def test_readers_that_open_one_cold_file_together_die_at_once(weightfs, folder, mode):
    content = b"".join(models.noise("together", 2 * MIB))
    names = [f"{number}.safetensors" for number in range(6)]
    with hostile.HostileOrigin(models.served("m", dict.fromkeys(names, content))) as source:
        mounted = weightfs({NAME: source.url("m/")}, passthrough=mode == "passthrough")
        for name in names:
            source.faults[f"m/{name}"] = [hostile.stall(300_000)]
            readers = [start(READ, mounted.mount / NAME / name) for _ in range(4)]
            until(lambda: all(waits(reader) for reader in readers), 20, "all four wait")
            kill_at_once(readers)


@pytest.mark.seconds(120)
def test_an_open_after_a_kill_does_not_wait_for_what_others_read(weightfs, folder, mode):
    content = b"".join(models.noise("after", 8 * MIB))
    with hostile.HostileOrigin(models.served("m", {"w.safetensors": content})) as source:
        mounted = weightfs({NAME: source.url("m/")}, passthrough=mode == "passthrough")
        path = mounted.mount / NAME / "w.safetensors"
        source.faults["m/w.safetensors"] = [hostile.stall(300_000)]
        first = start(READ, path)
        until(lambda: waits(first) and mounted.status()["fills"], 20, "it waits for its bytes")
        mounted.wait_new_daemon(mounted.kill_daemon())
        second = start(OPEN, path)
        assert second.stdout.readline() == b"open\n"
        assert first.poll() is None
        kill_at_once([second, first])


WAYS = {
    "its model is removed and added again":
        lambda mounted, mend: (mounted.cli("rm", NAME), mend(), restart(mounted)),
    "its partial blob is wiped":
        lambda mounted, mend: (restart(mounted, lambda: wipe(mounted)), mend()),
}


def restart(mounted, while_it_is_down=lambda: None):
    """kill -9; what is to happen meanwhile happens while the daemon is stopped."""
    pid = mounted.pid
    os.kill(pid, signal.SIGSTOP)
    while_it_is_down()
    processes.kill(pid)
    mounted.wait_new_daemon(pid)


def wipe(mounted):
    for partial in (mounted.store / "partial").iterdir():
        shutil.rmtree(partial)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_wrong_bytes_that_nobody_can_judge_any_more_are_not_mixed_with_right_ones(
        weightfs, folder, mode, way):
    """A source that is wrong for a while, a daemon that dies before it finds out, and what it had on
    disk is gone: who holds the file has the wrong bytes, and gets no others."""
    good, bad = (b"".join(models.noise(seed, 8 * MIB)) for seed in ("good", "bad"))
    file = "w.safetensors"
    served = models.served("m", {file: good}) | models.served("other", {"x": b"x"})
    with hostile.HostileOrigin(served) as source:
        source.faults[f"m/{file}"] = [lambda reply, _: setattr(reply, "rate", MIB)]
        mounted = weightfs({"org/other": source.url("other/")}, config={"connections": 2}, passthrough=mode == "passthrough")
        mounted.cli("add", NAME, source.url("m/"))
        source.files[f"m/{file}"] = bad
        path = mounted.mount / NAME / file
        held = os.open(path, os.O_RDONLY)
        try:
            assert pread_all(held, 0, MIB) == bad[:MIB]

            def mend():
                source.files[f"m/{file}"] = good
            way(mounted, mend)
            mounted.cli("add", NAME, source.url("m/"))
            with pytest.raises(OSError) as refused:
                pread_all(held, MIB, len(good) - MIB)
            assert refused.value.errno in (errno.EIO, errno.ESTALE)
            assert read_at(path, 0, len(good)) == good
        finally:
            os.close(held)
