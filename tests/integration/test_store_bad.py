# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Stores on disks that are full, read-only or unsuitable, and stores that are not ours."""

import json
import os
import pathlib
import pwd
import subprocess

import pytest

import mounts
import processes
from daemon import StartError
from readers import error_of, same_tree
from waiting import until

NAME = "org/small"
pytestmark = pytest.mark.short


def refusal(mounted):
    with pytest.raises(StartError) as caught:
        mounted.start()
    assert caught.value.code == 1
    assert not mounts.at(mounted.mount)
    return caught.value.text


def lines(text):
    return [line for line in text.splitlines() if line.strip()]


# ---- full and failing disks

@pytest.mark.parametrize("megabytes", [4, 7])
def test_a_reader_does_not_see_that_the_disk_is_full(weightfs, folder, nginx, small, mode, megabytes):
    """Smaller than the model, or than one shard with the rest: what does not fit streams past it."""
    with mounts.tmpfs(folder / "disk", f"{megabytes}m") as disk:
        mounted = weightfs({NAME: nginx.url("small/")}, store=disk / "store",
                           passthrough=mode == "passthrough")
        same_tree(mounted.mount / NAME, small)
        same_tree(mounted.mount / NAME, small)
        assert mounted.status()["pid"]
        mounted.stop()


def test_a_disk_filled_by_somebody_else(weightfs, folder, nginx, small):
    with mounts.ext4(folder, 32) as disk:
        mounted = weightfs({NAME: nginx.url("small/")}, store=disk / "store")
        # Large blocks first: what does not fit of the last of them is filled by small ones.
        for block in ("64k", "1k"):
            subprocess.run(["dd", "if=/dev/zero", f"of={disk}/ballast", f"bs={block}",
                            "oflag=append", "conv=notrunc"], capture_output=True)
        assert os.statvfs(disk).f_bavail < 32
        same_tree(mounted.mount / NAME, small)
        (disk / "ballast").unlink()
        mounted.wait(NAME)
        same_tree(mounted.mount / NAME, small)
        mounted.stop()


def test_warm_on_a_full_disk_fails_with_a_reason(weightfs, folder, nginx):
    with mounts.tmpfs(folder / "disk", "3m") as disk:
        mounted = weightfs({NAME: nginx.url("small/")}, store=disk / "store")
        done = mounted.cli("warm", NAME, "--wait", check=False)
        assert done.returncode == 1
        assert "space" in done.stderr.lower() or "full" in done.stderr.lower()
        mounted.stop()


def test_a_read_only_store_is_refused(weightfs, folder):
    with mounts.tmpfs(folder / "disk") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        text = refusal(weightfs({}, start=False, store=disk / "store"))
        assert "read-only" in text.lower()


def test_a_store_that_becomes_read_only_streams(weightfs, folder, nginx, small):
    with mounts.ext4(folder, 64) as disk:
        mounted = weightfs({NAME: nginx.url("small/")}, store=disk / "store")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=False)
        same_tree(mounted.mount / NAME, small)
        mounted.stop()


@pytest.mark.parametrize("how", ["read-only", "gone"])
def test_a_daemon_that_finds_its_store_failed_serves_past_it(weightfs, folder, nginx, small, how, mode):
    with mounts.ext4(folder, 64) as disk:
        temporary = folder / "tmp"
        temporary.mkdir()
        temporary.chmod(0o777)
        mounted = weightfs({NAME: nginx.url("small/")}, store=disk / "store",
                           passthrough=mode == "passthrough", env={"TMPDIR": str(temporary)})
        mounted.wait(NAME)
        if how == "read-only":
            # As the kernel does where errors=remount-ro.
            subprocess.run(["mount", "-o", "remount,abort", str(disk)], check=False)
        else:
            subprocess.run(["rm", "-rf", str(disk / "store")], check=True)
        same_tree(mounted.mount / NAME, small)
        before = mounted.status()["pid"]
        processes.kill(before)
        same_tree(mounted.mount / NAME, small)
        before, first = mounted.status()["pid"], before
        assert before != first
        processes.kill(before)
        mounted.wait_new_daemon(before)
        assert "could not be opened" in mounted.status()["store"]["error"]
        assert os.listdir(temporary) == [], "nothing takes the place of the store"
        mounted.stop()


# ---- kinds of filesystems

def test_a_store_on_tmpfs_works_and_says_what_it_costs(weightfs, folder, nginx, small, mode):
    with mounts.tmpfs(folder / "disk") as disk:
        mounted = weightfs({NAME: nginx.url("small/")}, store=disk / "store",
                           passthrough=mode == "passthrough")
        mounted.wait(NAME)
        same_tree(mounted.mount / NAME, small)
        assert "tmpfs" in mounted.log_text()
        mounted.stop()


def test_a_store_on_overlayfs_works_without_passthrough_and_says_why(weightfs, folder, nginx, small):
    with mounts.overlay(folder / "overlay") as merged:
        mounted = weightfs({NAME: nginx.url("small/")}, store=merged / "store")
        mounted.wait(NAME)
        same_tree(mounted.mount / NAME, small)
        status = mounted.status()["passthrough"]
        assert status["active"] is False
        assert status["reason"]
        mounted.stop()


# ---- what is not ours, or somebody else's at the moment

def test_a_store_of_an_unknown_version_is_refused_and_not_rewritten(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    mounted.stop()
    version = mounted.store / "VERSION"
    version.chmod(0o644)
    version.write_text("999\n")
    before = snapshot(mounted.store)
    assert "999" in refusal(mounted)
    assert snapshot(mounted.store) == before


def test_a_state_of_an_unknown_version_is_refused_and_not_rewritten(weightfs, nginx):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.stop()
    changed = 0
    for path in mounted.state.rglob("catalog.json"):
        path.write_text(path.read_text().replace('"version": 1', '"version": 999')
                        .replace('"version":1', '"version":999'))
        changed += "999" in path.read_text()
    assert changed, "the catalog has a version"
    before = snapshot(mounted.state)
    assert "999" in refusal(mounted)
    assert snapshot(mounted.state) == before


def snapshot(folder):
    """Names, sizes and times of everything that is not a lock or a log."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")
            if path.is_file() and path.name not in ("lock", "session")}


def test_a_store_in_use_by_another_daemon_is_refused(weightfs, nginx, small):
    first = weightfs({NAME: nginx.url("small/")})
    second = weightfs({NAME: nginx.url("small/")}, start=False, store=first.store)
    assert "use" in refusal(second)
    same_tree(first.mount / NAME, small)


def owners(folder):
    return {str(path): (path.lstat().st_uid, path.lstat().st_gid) for path in [folder, *folder.rglob("*")]}


@pytest.mark.parametrize("which", ["store", "state"])
def test_another_user_does_not_take_a_directory_from_the_daemon_that_has_it(weightfs, nginx, small, which):
    first = weightfs({NAME: nginx.url("small/")}, options=["--user", "nobody"])
    first.wait(NAME)
    directory = pathlib.Path(getattr(first, which))
    before = owners(directory)
    second = weightfs({}, start=False, options=["--user", "daemon"])
    setattr(second, which, directory)
    assert f"{directory} is in use by process {first.pid}" in refusal(second)
    assert owners(directory) == before
    first.cli("evict", NAME)
    first.wait(NAME)
    first.wait_new_daemon(first.kill_daemon())
    same_tree(first.mount / NAME, small)


def test_an_idle_store_goes_to_another_user(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")}, options=["--user", "nobody"])
    mounted.wait(NAME)
    mounted.stop()
    mounted.options = ["--user", "daemon"]
    mounted.start()
    assert {uid for uid, _ in owners(mounted.store).values()} == {pwd.getpwnam("daemon").pw_uid}
    assert mounted.model(NAME)["complete"]
    same_tree(mounted.mount / NAME, small)


@pytest.mark.parametrize("name", ["index.db-journal", "VERSION.tmp"])
def test_a_start_that_was_interrupted_does_not_make_a_store_foreign(weightfs, nginx, small, name):
    """SQLite has a journal for the moment in which it turns an index to its write-ahead log."""
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    mounted.stop()
    owner = mounted.store.stat()
    (mounted.store / name).write_bytes(b"")
    os.chown(mounted.store / name, owner.st_uid, owner.st_gid)
    mounted.start()
    assert mounted.model(NAME)["complete"]
    same_tree(mounted.mount / NAME, small)


@pytest.mark.parametrize("which", ["store", "state"])
def test_a_directory_that_holds_anything_foreign_is_refused_and_left_alone(weightfs, which):
    mounted = weightfs({}, start=False)
    directory = pathlib.Path(getattr(mounted, which))
    directory.mkdir()
    (directory / "thesis.tex").write_text("years of work")
    before = (directory / "thesis.tex").stat(), directory.stat()
    text = refusal(mounted)
    assert str(directory) in text
    after = (directory / "thesis.tex").stat(), directory.stat()
    assert [(s.st_uid, s.st_mode, s.st_mtime_ns) for s in before] == \
        [(s.st_uid, s.st_mode, s.st_mtime_ns) for s in after]


def test_a_store_that_is_a_file_is_refused(weightfs, folder):
    (folder / "store").write_text("")
    assert "store" in refusal(weightfs({}, start=False, store=folder / "store"))


def test_directories_are_given_to_the_daemons_user(weightfs, nginx):
    mounted = weightfs({NAME: nginx.url("small/")}, options=["--user", "nobody"])
    assert mounted.store.stat().st_uid != 0
    assert mounted.state.stat().st_uid != 0
    assert mounted.store.stat().st_mode & 0o022 == 0


def test_leftovers_of_an_interrupted_write_are_cleaned_up(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    mounted.stop()
    owner = mounted.store.stat()
    digest = small.files[small.shards[0]].sha256
    leftover = mounted.store / "partial" / (digest + ".tmp")
    leftover.write_bytes(b"half")
    os.chown(leftover, owner.st_uid, owner.st_gid)
    mounted.start()
    until(lambda: not leftover.exists(), 10, "the leftover goes")
    same_tree(mounted.mount / NAME, small)


def test_a_state_in_use_by_another_daemon_is_refused(weightfs, nginx, small):
    first = weightfs({NAME: nginx.url("small/")})
    second = weightfs({}, start=False)
    second.state = first.state
    assert str(first.state) in refusal(second)
    same_tree(first.mount / NAME, small)


def test_what_was_fetched_of_a_removed_model_is_gone_after_a_restart(weightfs, origin):
    source = origin(rate="2m")
    mounted = weightfs({NAME: source.url("large/"), "org/other": source.url("small/")})
    partial = mounted.store / "partial"
    shard = mounted.mount / NAME / "model-00001-of-00004.safetensors"
    with open(shard, "rb", buffering=0) as file:
        assert file.read(10)
        mounted.cli("rm", NAME)
        assert any(partial.iterdir())  # its reader may go on
    mounted.stop()
    mounted.start()
    assert not any(partial.iterdir())


def test_a_blob_that_another_listing_gives_another_size_is_not_called_complete(weightfs, nginx, small, folder):
    tree = folder / "tree"
    tree.mkdir()
    config = small.files["config.json"]
    (tree / "weightfs.json").write_text(json.dumps({"files": [
        {"path": "config.json", "size": config.size + 1, "sha256": config.sha256}]}))
    (tree / "config.json").write_bytes(small.data("config.json") + b" ")
    mounted = weightfs({NAME: nginx.url("small/"), "org/liar": f"file://{tree}"})
    mounted.wait(NAME)
    waited = mounted.cli("wait", "org/liar", check=False)
    assert waited.returncode == 1, waited.stderr
    assert error_of((mounted.mount / "org/liar/config.json").read_bytes) is not None


def test_a_source_within_the_mount_itself_is_refused(weightfs, nginx):
    mounted = weightfs({NAME: nginx.url("small/")})
    added = mounted.cli("add", "org/mirror", f"file://{mounted.mount}/{NAME}", check=False)
    assert added.returncode == 1
    assert "itself" in added.stderr
