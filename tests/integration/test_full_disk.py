# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The only disk of a store gets full, or read-only, under readers and fills, and is all right again."""

import contextlib
import os
import subprocess

import pytest

import models
import mounts
from readers import Readers, same_tree
from test_events import events, log
from waiting import until

pytestmark = pytest.mark.short

FIRST, SECOND, THIRD = "org/first", "org/second", "org/third"
MB = 1 << 20


@pytest.fixture
def store(folder):
    with mounts.ext4(folder, 64) as disk:
        yield disk / "store"


@pytest.fixture
def tree(folder):
    """Three models of 12 MiB whose files are not shared."""
    root = folder / "tree"
    root.mkdir()
    made = {name: models.write_model(root / name.split("/")[1], 4, 3 * MB, seed)
            for seed, name in enumerate((FIRST, SECOND, THIRD), 31)}
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755)
    return made


@pytest.fixture
def node(weightfs, origin, store, tree, folder):
    """The first model complete; the others come slowly, until their origin is let go()."""
    def make(**options):
        fast, slow = origin(folder / "tree"), origin(folder / "tree", rate="100k")
        sources = {name: (fast if name == FIRST else slow).url(name.split("/")[1] + "/") for name in tree}
        mounted = weightfs(sources, store=store,
                           config={"capacity": "100%", "min_free": "0", "admission": "always"}, **options)
        mounted.wait(FIRST)
        mounted.let_go = lambda: slow.restart(rate=None)
        return mounted
    return make


def fill_up(folder):
    """A file that takes all the space there is, to the last block; also what came back since the last call."""
    path = folder / "foreign"
    with open(path, "ab", buffering=0) as file:
        size = MB
        while size >= 512:
            try:
                file.write(b"f" * size)
            except OSError:
                size //= 2
        with contextlib.suppress(OSError):
            os.fsync(file.fileno())
    return path


def begin_fill(mounted, store, name):
    mounted.cli("warm", name)
    until(lambda: len(list(store.glob("partial/*/map"))) >= 4, 20, f"{name} is being filled")


def degraded(mounted):
    return mounted.status()["store"]["degraded"]


def wait_healthy(mounted, store):
    until(lambda: degraded(mounted) == "", 20, "all of the store can be used", interval=0.1)
    status = mounted.status()["store"]
    assert status["error"] == "" and status["volumes"][0]["state"] == "ok"


@contextlib.contextmanager
def reading(mounted, model, name, folder):
    """Others read a complete model over and over, and see nothing of what the disk has."""
    stop = folder / "stop"
    with Readers(mounted.mount / name, model.folder, list(model.files), ["pread", "mmap"],
                 until=stop) as readers:
        readers.wait_all_open()
        yield
        assert not readers.failed()
        readers.finish(60, [mounted])


def test_a_disk_that_others_fill_while_fills_run_is_streamed_past_until_there_is_room(node, store, tree,
                                                                                      folder):
    mounted = node()
    mounted.cli("pin", FIRST)  # so that nothing can go
    with reading(mounted, tree[FIRST], FIRST, folder):
        begin_fill(mounted, store, SECOND)
        foreign = fill_up(store.parent)
        mounted.let_go()
        same_tree(mounted.mount / SECOND, tree[SECOND])
        # What was given up has given its space back.
        until(lambda: fill_up(store.parent) and "is full" in degraded(mounted), 20,
              "it is told that the disk is full")
        assert mounted.model(FIRST)["complete"]
        assert str(store) in degraded(mounted) and "reading past the disk" in mounted.log_text()
        same_tree(mounted.mount / SECOND, tree[SECOND])
        assert "is full" in mounted.cli("status").stdout
        assert not mounted.model(SECOND)["complete"]
        foreign.unlink()
        wait_healthy(mounted, store)
    mounted.wait(SECOND)
    assert mounted.model(SECOND)["complete"]
    same_tree(mounted.mount / SECOND, tree[SECOND])


def test_a_disk_that_others_fill_while_fills_run_gets_room_by_an_eviction(node, store, tree):
    mounted = node()
    begin_fill(mounted, store, SECOND)
    fill_up(store.parent)
    mounted.let_go()
    mounted.cli("wait", SECOND, "--timeout", "30s")
    assert not mounted.model(FIRST)["complete"], "it made room"
    assert mounted.status()["policy"]["evictions"] == 1
    assert mounted.status()["policy"]["refused"] == 0
    same_tree(mounted.mount / SECOND, tree[SECOND])
    wait_healthy(mounted, store)


def test_a_disk_that_is_read_only_for_a_while_is_used_again(node, store, tree, folder, mode):
    """Under one daemon. What a mount says of the whole disk goes for whoever opens a file by its name; those
    that are open for writing, which is why the kernel would refuse to remount it, stay so."""
    mounted = node(passthrough=mode == "passthrough")
    pid = mounted.pid
    with reading(mounted, tree[FIRST], FIRST, folder):
        begin_fill(mounted, store, SECOND)
        with mounts.mounted(folder / "view", "--bind", store.parent) as view, contextlib.ExitStack() as over:
            # Before anybody opens a file through it.
            subprocess.run(["mount", "-o", "remount,bind,ro", str(view)], check=True)
            over.enter_context(mounts.mounted(store.parent, "--bind", view))
            mounted.let_go()
            for name in (SECOND, THIRD, FIRST):
                same_tree(mounted.mount / name, tree[name])
            until(lambda: "Read-only" in degraded(mounted), 20, "it is told that the disk is read-only")
            status = mounted.status()["store"]
            assert status["volumes"][0]["state"] == "set aside" and status["error"]
            assert mounted.model(FIRST)["complete"] and not mounted.model(THIRD)["complete"]
        wait_healthy(mounted, store)
    for name in (SECOND, THIRD):
        mounted.wait(name)
        same_tree(mounted.mount / name, tree[name])
    assert {file.sha256 for model in tree.values() for file in model.files.values()} <= mounted.blobs()
    assert mounted.pid == pid


def test_shadow_leaves_a_read_only_disk_in_peace_and_prod_waits_for_it(node, store, tree):
    mounted = node()
    mounted.stop()
    disk = store.parent
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    said = len(mounted.log_text())
    mounted.options += ["--mode", "shadow"]
    mounted.start()
    mounted.let_go()
    for name in (FIRST, SECOND):
        same_tree(mounted.mount / name, tree[name])
    assert mounted.status()["shadow"]["hits"] > 0, "it knows what the store has"
    assert degraded(mounted) == ""
    text = mounted.log_text()[said:]
    assert "ead-only" not in text and "[warning]" not in text and "[error]" not in text, text

    assert mounted.cli("mode", "prod").stdout == "prod\n"
    status = mounted.status()
    assert status["mode"] == "prod" and "Read-only" in status["store"]["degraded"]
    assert status["store"]["volumes"][0]["state"] == "not opened"
    same_tree(mounted.mount / FIRST, tree[FIRST])
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    wait_healthy(mounted, store)
    assert mounted.model(FIRST)["complete"]
    mounted.wait(SECOND)


def test_more_capacity_than_the_disk_has_is_cut_and_told_once_the_disk_is_known(weightfs, store):
    def told():
        return mounted.log_text().count("the capacity of 1GiB is more than the disk has")
    mounted = weightfs(store=store, config={"capacity": "1GiB", "min_free": "0"})
    assert told() == 1
    size = os.statvfs(store).f_blocks * os.statvfs(store).f_frsize
    assert mounted.status()["policy"]["limit"] <= size < 64 * MB
    mounted.stop()
    # One that is opened later is known later.
    subprocess.run(["mount", "-o", "remount,ro", str(store.parent)], check=True)
    mounted.options += ["--mode", "shadow"]
    mounted.start()
    mounted.cli("mode", "prod")
    assert told() == 1
    subprocess.run(["mount", "-o", "remount,rw", str(store.parent)], check=True)
    until(lambda: told() == 2, 20, "it is told again")
    wait_healthy(mounted, store)
    assert 0 < mounted.status()["policy"]["limit"] <= size


def test_events_outlive_a_full_state_directory(weightfs, origin, tree, folder):
    source = origin(folder / "tree")
    mounted = weightfs(start=False, config={"event_log_size": str(256 << 10)})
    mounted.models = {name: source.url(name.split("/")[1] + "/") for name in (FIRST, SECOND)}
    with mounts.tmpfs(mounted.state, "2m"):
        mounted.start()
        mounted.wait(FIRST)
        foreign = fill_up(mounted.state)
        mounted.wait(SECOND)
        for name in (FIRST, SECOND):
            same_tree(mounted.mount / name, tree[name])
        files = len(tree[FIRST].files) + len(tree[SECOND].files)
        assert len(events(mounted, "fill")) >= files, "they are told all the same"
        until(lambda: "No space left" in mounted.status()["events"]["error"], 20, "it is said why")
        assert "not in the log" in mounted.cli("status").stdout
        foreign.unlink()
        until(lambda: mounted.status()["events"]["error"] == "", 20, "events are written again")
        assert mounted.status()["events"]["dropped"] == 0, "they waited in memory"
        told = [one["seq"] for one in events(mounted)]
        until(lambda: [one["seq"] for one in log(mounted)][:len(told)] == told, 20, "all of them are written")
        # What is lost at the end is told where there is still somebody to tell.
        fill_up(mounted.state)
        for name in (FIRST, SECOND):
            mounted.cli("evict", name)
            mounted.wait(name)
        until(lambda: mounted.status()["events"]["error"], 20, "more happened than the last block takes")
        mounted.stop()
        assert "events are lost" in mounted.log_text()
