# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""What weightfs says of itself: extended attributes, counters, the state of a path; and what it must not say."""

import errno
import os
import pathlib
import subprocess

import pytest

import hostile
import models
import mounts
from readers import error_of, read_direct, same_tree

NAME = "org/model"
FILE = "w.safetensors"
MIB = 1 << 20
BLOCK = 64 << 10  # the unit in which a fill keeps account
pytestmark = pytest.mark.short


def attribute(path, name):
    return os.getxattr(path, f"user.weightfs.{name}").decode()


def test_a_wrong_digest_is_told_by_the_attributes_too(weightfs):
    with hostile.HostileOrigin(models.served("m", {FILE: b"".join(models.noise("facts", 2 * MIB))})) as source:
        source.faults[f"m/{FILE}"] = [hostile.flip(MIB)]
        mounted = weightfs({NAME: source.url("m/")})
        path = mounted.mount / NAME / FILE
        assert error_of(attribute, path, "error") == errno.ENODATA
        assert mounted.cli("warm", NAME, "--wait", check=False).returncode == 1
        error = attribute(path, "error")
        assert "digest" in error and len(error.split()) > 3, error
        assert "\n" not in error
        assert error in mounted.json("why", path)["sentence"]

        source.faults.clear()
        mounted.wait(NAME)
        assert error_of(attribute, path, "error") == errno.ENODATA, "what went well is no error"
        assert attribute(path, "state") == "complete"


def test_attributes_name_the_revision_and_the_snapshot_of_the_path(weightfs, folder, origin, small):
    root = folder / "root"
    root.mkdir(mode=0o755)
    models.copy(small, root / "m")
    mounted = weightfs({NAME: origin(root=root).url("m/")})
    old = mounted.model(NAME)
    (root / "m/config.json").write_text('{"new": true}')
    models.describe(root / "m")
    mounted.cli("update", NAME)
    new = mounted.model(NAME)
    assert new["snapshot"] != old["snapshot"] and len(new["snapshot"]) == 64
    for view, model in ((NAME, new), (f"{NAME}@{old['revision']}", old), (f".snapshots/{old['snapshot']}", old)):
        for path in (mounted.mount / view, mounted.mount / view / "config.json"):
            assert attribute(path, "revision") == model["revision"]
            assert attribute(path, "snapshot") == model["snapshot"]


def test_why_knows_every_directory_that_exists(weightfs, folder, origin):
    """As people write them: with the slash that completion adds, by revision, by snapshot."""
    deep = folder / "root/m/sub/deep"
    deep.mkdir(parents=True)
    (deep / "weights.bin").write_bytes(b"w" * 10_000)
    (folder / "root/m/config.json").write_text("{}")
    models.describe(folder / "root/m")
    mounted = weightfs({NAME: origin(root=folder / "root").url("m/")})
    mounted.wait(NAME)
    model = mounted.model(NAME)
    views = [NAME, f"{NAME}@{model['revision']}", f".snapshots/{model['snapshot']}"]
    paths = ["", "org", ".snapshots", *views, *(f"{view}/sub" for view in views),
             *(f"{view}/sub/deep" for view in views)]
    for path in paths:
        for slash in ("", "/"):
            full = f"{mounted.mount}/{path}{slash}"
            assert os.path.isdir(full), full
            assert mounted.json("why", full)["state"] == "directory", full
    for view in views:
        assert mounted.json("why", mounted.mount / view / "sub/deep/weights.bin")["state"] == "complete"
        missing = mounted.mount / view / "sub/none"
        assert not missing.exists()
        assert mounted.cli("why", f"{missing}/", check=False).returncode == 3


def test_why_does_not_mind_how_the_mount_point_was_written(weightfs, folder, nginx):
    (folder / "models").mkdir()
    mounted = weightfs({NAME: nginx.url("small/")}, start=False, mount=folder / "models")
    arguments = mounted.command()
    arguments[arguments.index(str(folder / "models"))] = f"{folder}/models/"
    mounted.command = lambda: arguments
    mounted.start()
    for path in (folder / "models", folder / "models" / NAME, f"{folder}/models/{NAME}/"):
        assert mounted.json("why", path)["state"] == "directory"


def test_a_read_that_waited_is_a_miss_of_what_it_waited_for(weightfs, origin, small):
    mounted = weightfs({NAME: origin(rate=256 << 10).url("small/")})
    path = mounted.mount / NAME / small.shards[0]
    before = mounted.status()["cache"]  # the daemon has read the index of shards itself
    assert before["misses"] == 0
    length = 64 << 10
    offset = small.files[small.shards[0]].size // 2 // length * length
    assert read_direct(path, offset, length) == small.data(small.shards[0])[offset:offset + length]
    cache = mounted.status()["cache"]
    assert cache["hits"] == 0 and cache["misses"] == 1
    # The open waits for the first block, the read for its own.
    assert length <= cache["miss_bytes"] - before["miss_bytes"] <= length + BLOCK


@pytest.mark.parametrize("how", ["read-only", "gone"])
def test_without_its_store_a_daemon_says_why_nothing_is_kept(weightfs, folder, nginx, small, how):
    with mounts.ext4(folder, 64) as disk:
        mounted = weightfs({NAME: nginx.url("small/")}, store=disk / "store")
        mounted.wait(NAME)
        if how == "read-only":
            subprocess.run(["mount", "-o", "remount,abort", str(disk)], check=False)
        else:
            subprocess.run(["rm", "-rf", str(disk / "store")], check=True)
        mounted.wait_new_daemon(mounted.kill_daemon())
        reason = mounted.status()["store"]["error"]
        assert str(disk / "store") in reason
        assert reason in mounted.cli("status").stdout
        refused = mounted.cli("warm", NAME, check=False)
        assert refused.returncode == 1
        assert reason in refused.stderr and "could not be opened" in refused.stderr
        same_tree(mounted.mount / NAME, small)
        mounted.stop()


# ---- secrets

def test_the_query_of_a_source_is_shown_to_nobody(weightfs, origin, small):
    """It may be a signature. It comes from the configuration, because arguments are public."""
    source = origin()
    shard = small.shards[0]
    query = "?X-Signature=s3cr3t"
    sources = {"org/good": source.url(f"small/{shard}{query}"), "org/none": source.url(f"small/none{query}"),
               "org/tree": source.url(f"small/{query}")}
    mounted = weightfs({}, config={"deadline": "1s", "stall_timeout": "500ms", "log_level": "debug", "models": [
        {"name": name, "source": url} for name, url in sources.items()]})
    path = mounted.mount / "org/good" / shard
    mounted.wait("org/good")
    assert path.read_bytes() == small.data(shard), "with its query it is fetched"
    seen = [attribute(path, name) for name in ("source", "revision", "digest")]
    seen += [mounted.cli("why", path).stdout, mounted.cli("evict", "org/good").stdout]
    source.stop()
    assert error_of(path.read_bytes) == errno.ETIMEDOUT
    seen += [attribute(path, "error"), mounted.cli("why", path).stdout]
    other = mounted.cli("add", "org/good", source.url("small/"), check=False)
    assert other.returncode == 1 and shard in other.stderr
    for command in (["status"], ["ls"], ["ls", "org/good"], ["config", "check", "--config",
                                                             mounted.folder / "config.json"],
                    ["add", "org/none", sources["org/none"]], ["update", "org/good"], ["warm", "org/good", "--wait"]):
        for form in ([], ["--json"]):
            done = mounted.cli(*command, *form, check=False)
            seen += [done.stdout, done.stderr]
    for pid in (mounted.pid, mounted.keeper_pid):
        seen.append(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace"))
    seen += [other.stderr, mounted.log_text()]
    assert "s3cr3t" not in "\n".join(seen)


@pytest.mark.parametrize("source", ["http://user:s3cr3t@127.0.0.1:1/m/", "http://s3cr3t@127.0.0.1:1/m/",
                                    "http://user:s3cr3t@127.0.0.1:1/a b/", "http://user:s3cr3t/@127.0.0.1/",
                                    "user:s3cr3t@127.0.0.1/m/", "http://127.0.0.1:0/m?s3cr3t"])
def test_a_password_in_a_source_is_refused_everywhere_and_not_repeated(weightfs, folder, source):
    mounted = weightfs({}, config={"models": [{"name": NAME, "source": source}]})
    assert mounted.json("ls")["models"] == [], "what cannot work is left, and told to the log"
    check = mounted.cli("config", "check", "--config", mounted.folder / "config.json", check=False)
    assert check.returncode == 2 and NAME in check.stderr
    added = mounted.cli("add", NAME, source, check=False)
    assert added.returncode == 2 and added.stderr.strip()
    assert NAME in mounted.log_text()
    assert "s3cr3t" not in check.stderr + check.stdout + added.stderr + added.stdout + mounted.log_text()
