# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A store on two disks: what goes where, and one of them failing under readers and fills."""

import contextlib
import json
import os
import pwd
import subprocess

import pytest

import mounts
import models
from readers import Readers, same_tree
from waiting import until

pytestmark = pytest.mark.short

FIRST, SECOND, THIRD = "org/first", "org/second", "org/third"


@pytest.fixture
def disks(folder):
    """Two disks of 64 MiB each, and the directory of a store on each."""
    with contextlib.ExitStack() as stack:
        stores = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            stores.append(stack.enter_context(mounts.ext4(folder / name, 64)) / "store")
        yield stores


@pytest.fixture
def tree(folder):
    """Three models of 12 MiB whose files are not shared."""
    root = folder / "tree"
    root.mkdir()
    made = {name: models.write_model(root / name.split("/")[1], 4, 3 << 20, seed)
            for seed, name in enumerate((FIRST, SECOND, THIRD), 11)}
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755)
    return made


def both(stores):
    return ":".join(map(str, stores))


def blobs_on(store):
    return {path.name for path in store.glob("blobs/sha256/*/*") if "." not in path.name}


def sources(origin, *names):
    return {name: origin.url(name.split("/")[1] + "/") for name in names}


def volume(mounted, store):
    return next(each for each in mounted.status()["store"]["volumes"] if each["directory"] == str(store))


def test_models_are_spread_over_both_disks_and_found_again(weightfs, origin, disks, tree, folder, mode):
    origin = origin(folder / "tree")
    mounted = weightfs(sources(origin, FIRST, SECOND), store=both(disks),
                       passthrough=mode == "passthrough")
    for name in (FIRST, SECOND):
        mounted.wait(name)
    one, two = map(blobs_on, disks)
    assert one and two and not one & two
    status = mounted.status()["store"]
    assert status["degraded"] == "" and status["error"] == ""
    assert [each["state"] for each in status["volumes"]] == ["ok", "ok"]
    assert sum(each["bytes"] for each in status["volumes"]) == status["bytes"]
    assert status["blobs"] == len(one | two)
    assert str(disks[1]) in mounted.cli("status").stdout
    mounted.stop()
    mounted.start()
    sent = len(origin.requests())
    for name in (FIRST, SECOND):
        assert mounted.model(name)["complete"]
        same_tree(mounted.mount / name, tree[name])
    assert len(origin.requests()) == sent, "all of it was on the disks"
    mounted.cli("evict", FIRST)
    mounted.cli("evict", SECOND)
    left = blobs_on(disks[0]) | blobs_on(disks[1])
    assert not left & {tree[name].files[shard].sha256 for name in (FIRST, SECOND)
                       for shard in tree[name].shards}


def test_a_disk_that_becomes_read_only_is_set_aside_and_its_successor_used(weightfs, origin, disks, tree,
                                                                          folder, mode):
    slow, origin = origin(folder / "tree", rate="300k"), origin(folder / "tree")
    mounted = weightfs(sources(origin, FIRST), store=both(disks), passthrough=mode == "passthrough")
    mounted.wait(FIRST)
    plain, until_file = tree[FIRST], folder / "stop"
    modes = ["pread", "mmap"]
    with Readers(mounted.mount / FIRST, plain.folder, list(plain.files), modes, until=until_file) as readers:
        readers.wait_all_open()
        mounted.cli("add", SECOND, slow.url("second/"))
        mounted.cli("warm", SECOND)
        broken = until(lambda: next((store for store in disks if any(store.glob("partial/*/data"))), None),
                       30, "a fill is under way")
        whole = disks[1] if broken == disks[0] else disks[0]
        disk = broken.parent
        assert mounted.status()["fills"] and blobs_on(broken) and blobs_on(whole)
        # What the kernel does by itself where a write fails. The index is open for writing, which is
        # why it would refuse to remount it otherwise.
        subprocess.run(["mount", "-o", "remount,abort", str(disk)], check=False)
        same_tree(mounted.mount / SECOND, tree[SECOND])
        until(lambda: volume(mounted, broken)["state"] == "set aside", 30, "the disk is set aside")
        assert str(broken) in mounted.status()["store"]["degraded"]
        assert mounted.status()["store"]["error"] == "", "the other one keeps"
        assert "degraded" in mounted.cli("status").stdout
        mounted.wait(SECOND)
        same_tree(mounted.mount / FIRST, plain)
        same_tree(mounted.mount / SECOND, tree[SECOND])
        assert not readers.failed()
        readers.finish(60, [mounted])
    assert volume(mounted, broken)["state"] == "set aside"
    # The disk is changed.
    mounts.detach(disk)
    (folder / "new").mkdir()
    image = folder / "new" / "image"
    with open(image, "wb") as file:
        file.truncate(96 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", str(image)], check=True)
    with mounts.mounted(disk, "-o", "loop", image):
        user = pwd.getpwuid(whole.stat().st_uid)
        broken.mkdir()
        os.chown(broken, user.pw_uid, user.pw_gid)
        until(lambda: volume(mounted, broken)["state"] == "ok", 90, "the new disk is used", interval=0.5)
        assert mounted.status()["store"]["degraded"] == ""
        mounted.cli("add", THIRD, origin.url("third/"))
        mounted.wait(THIRD)
        mounted.wait(FIRST)
        for name in (FIRST, SECOND, THIRD):
            same_tree(mounted.mount / name, tree[name])
        assert blobs_on(broken)
        mounted.stop()


def test_a_disk_that_refuses_to_be_written_for_a_while_is_used_again(weightfs, origin, disks, tree, folder):
    origin = origin(folder / "tree")
    mounted = weightfs(sources(origin, FIRST), store=both(disks))
    until(lambda: not mounted.status()["fills"], 30, "what was asked for with the model is there")
    before = blobs_on(disks[0])
    refusing = [disks[0], disks[0] / "partial"]
    subprocess.run(["chattr", "+i", *map(str, refusing)], check=True)
    try:
        mounted.wait(FIRST)
        assert volume(mounted, disks[0])["state"] == "set aside"
        assert "set aside" in mounted.status()["store"]["degraded"]
        assert blobs_on(disks[0]) == before < blobs_on(disks[0]) | blobs_on(disks[1])
    finally:
        subprocess.run(["chattr", "-i", *map(str, refusing)], check=True)
    until(lambda: volume(mounted, disks[0])["state"] == "ok", 90, "the disk is used again", interval=0.5)
    mounted.cli("add", SECOND, origin.url("second/"))
    mounted.wait(SECOND)
    assert blobs_on(disks[0]) > before
    for name in (FIRST, SECOND):
        same_tree(mounted.mount / name, tree[name])
    assert mounted.log_text().count("is set aside") == 1
    told = [json.loads(line) for line in mounted.cli("events", "--json", "-n", "4096").stdout.splitlines()]
    disk = [one for one in told if one["event"] == "disk"]
    assert [(one["action"], one["path"]) for one in disk] == [("set_aside", str(disks[0])), ("back", str(disks[0]))]
    assert disk[0]["reason"]


def test_a_disk_that_is_missing_at_the_start_is_used_once_it_is_there(weightfs, origin, disks, tree, folder):
    """The others do without it, whether somebody mounts or a daemon takes over."""
    origin = origin(folder / "tree")
    mounted = weightfs(sources(origin, FIRST), store=both(disks))
    mounted.wait(FIRST)
    mounted.stop()
    lacking = disks[0] if blobs_on(disks[0]) else disks[1]
    subprocess.run(["mount", "-o", "remount,ro", str(lacking.parent)], check=True)
    mounted.start()
    assert volume(mounted, lacking)["state"] == "not opened"
    assert str(lacking) in mounted.status()["store"]["degraded"]
    same_tree(mounted.mount / FIRST, tree[FIRST])
    subprocess.run(["mount", "-o", "remount,rw", str(lacking.parent)], check=True)
    until(lambda: volume(mounted, lacking)["state"] == "ok", 90, "the disk is used", interval=0.5)
    assert mounted.status()["store"]["degraded"] == ""
    same_tree(mounted.mount / FIRST, tree[FIRST])


def test_a_store_that_failed_comes_back_without_a_restart(weightfs, origin, disks, tree, folder, mode):
    """The only one: a daemon that took over without it opens it by itself."""
    origin = origin(folder / "tree")
    store = disks[0]
    mounted = weightfs(sources(origin, FIRST), store=store, passthrough=mode == "passthrough")
    mounted.wait(FIRST)
    moved = store.parent / "moved"
    store.rename(moved)
    mounted.wait_new_daemon(mounted.kill_daemon())
    assert volume(mounted, store)["state"] == "not opened"
    assert mounted.status()["store"]["error"]
    assert os.statvfs(mounted.mount).f_bsize > 0
    same_tree(mounted.mount / FIRST, tree[FIRST])
    assert mounted.cli("warm", FIRST, check=False).returncode == 1
    moved.rename(store)
    until(lambda: volume(mounted, store)["state"] == "ok", 90, "the store is used", interval=0.5)
    assert mounted.model(FIRST)["complete"]
    sent = len(origin.requests())
    same_tree(mounted.mount / FIRST, tree[FIRST])
    assert len(origin.requests()) == sent
    assert mounted.status()["passthrough"]["active"] == (mode == "passthrough")
