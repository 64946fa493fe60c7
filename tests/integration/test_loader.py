# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A real loader, end to end: the safetensors library from its registry opens the mounted path."""

import json
import pathlib
import subprocess
import sys

import pytest

import mounts
from alone import alone

NAME = "org/large"
# Handed over as text: an ordinary user may not be able to reach the source tree.
SCRIPT = pathlib.Path(__file__).with_name("load_tensors.py").read_text()


@pytest.fixture(scope="session")
def loader(kept):
    """An interpreter that has safetensors and numpy, made once, where any user can reach it."""
    folder = kept / "venv"
    python = folder / "bin/python"
    ready = folder / "ready"
    with alone(kept):
        if not ready.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check",
                            "numpy", "safetensors"], check=True)
            ready.touch()
    return python


@pytest.fixture(scope="session")
def load(loader):
    def run(folder, user=None):
        prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        done = subprocess.run([*prefix, str(loader), "-c", SCRIPT, str(folder)], capture_output=True, text=True,
                              timeout=170)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return run


@pytest.mark.seconds(400)
def test_a_model_of_over_a_gigabyte_from_the_origin_then_cold_then_hot(weightfs, origin, large, load, mode):
    plain = load(large.folder)
    assert plain["bytes"] > 1_000_000_000
    source = origin()
    mounted = weightfs({NAME: source.url("large/")}, passthrough=mode == "passthrough")
    times = {}
    for step in ("origin", "cold", "hot"):
        if step == "cold":
            mounted.wait(NAME)
            mounts.drop_caches()
        before = mounted.reads()
        found = load(mounted.mount / NAME)
        assert (found["tensors"], found["sha256"]) == (plain["tensors"], plain["sha256"]), step
        times[step] = found["seconds"]
        if step != "origin" and mode == "passthrough":
            assert mounted.reads() == before
    for name in large.shards:
        assert source.coverage(f"large/{name}", large.files[name].size) == (1, 1)
    print(f"plain hot {plain['seconds']} s, through the mount {times}")


@pytest.mark.seconds(300)
def test_four_ranks_load_at_once(weightfs, origin, large, loader, load, mode):
    plain = load(large.folder)
    source = origin(rate=20 << 20)
    mounted = weightfs({NAME: source.url("large/")}, passthrough=mode == "passthrough")
    ranks = [subprocess.Popen([str(loader), "-c", SCRIPT, str(mounted.mount / NAME)], stdout=subprocess.PIPE,
                              text=True) for _ in range(4)]
    for rank in ranks:
        output, _ = rank.communicate(timeout=240)
        assert rank.returncode == 0
        assert json.loads(output)["sha256"] == plain["sha256"]
    for name in large.shards:
        assert source.coverage(f"large/{name}", large.files[name].size)[1] == 1


@pytest.mark.short
def test_a_small_model_as_an_ordinary_user(weightfs, nginx, small, load, mode):
    mounted = weightfs({"org/small": nginx.url("small/")}, passthrough=mode == "passthrough")
    expected = load(small.folder)["sha256"]
    assert load(mounted.mount / "org/small", user=1000)["sha256"] == expected
    mounted.wait("org/small")
    assert load(mounted.mount / "org/small", user=1000)["sha256"] == expected
