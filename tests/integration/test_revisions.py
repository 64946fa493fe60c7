# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""What a name shows: updates, and what is refused; revisions by their own names."""

import concurrent.futures
import contextlib
import http.client
import json
import shutil
import socket
import subprocess
import sys
import threading

import pytest

import models
from readers import same_tree
from waiting import until

NAME = "org/small"


@pytest.fixture
def root(folder, small):
    """What an origin serves: a model that the test may change, in m/."""
    path = folder / "root"
    path.mkdir(mode=0o755)
    models.copy(small, path / "m")
    return path


def test_what_lacks_a_file_that_loaders_need_is_not_added_and_not_shown(weightfs, root, origin):
    mounted = weightfs({NAME: origin(root=root).url("m/")})
    before = mounted.model(NAME)
    source = before["source"]
    for name, said in (("model-00001-of-", "model-00001-of-"), ("tokenizer", "a tokenizer"), ("config.json",) * 2):
        for path in (root / "m").glob(f"{name}*"):
            path.rename(root / path.name)
        models.describe(root / "m")
        for command in (["update", NAME], ["add", "org/two", source]):
            refused = mounted.cli(*command, check=False)
            assert refused.returncode == 1 and said in refused.stderr, (said, refused.stderr)
        assert mounted.model(NAME)["revision"] == before["revision"] and not (mounted.mount / "org/two").exists()
        for path in root.glob(f"{name}*"):
            path.rename(root / "m" / path.name)
    (root / "m/config.json").unlink()
    models.describe(root / "m")
    mounted.cli("update", NAME, "--allow-missing")
    mounted.cli("add", "org/two", source, "--allow-missing")
    assert not (mounted.mount / NAME / "config.json").exists()
    assert mounted.model("org/two")["snapshot"] == mounted.model(NAME)["snapshot"]


def edit(root, number):
    (root / "m/README.md").write_text(f"revision {number}")
    return models.describe(root / "m")


def test_every_known_revision_is_reached_by_its_name_after_updates_and_a_rollback(weightfs, root, folder, origin,
                                                                                      small):
    mounted = weightfs({NAME: origin(root=root).url("m/")})
    mounted.wait(NAME)
    trees, known = [small], [mounted.model(NAME)]
    for number in (1, 2):
        trees.append(models.copy(edit(root, number), folder / f"tree{number}"))
        mounted.cli("update", NAME)
        known.append(mounted.model(NAME))
    mounted.json("rollback", NAME)
    same_tree(mounted.mount / NAME, small)
    for model, tree in zip(known, trees):
        for word in (model["revision"], model["snapshot"], model["revision"][:12]):
            same_tree(mounted.mount / f"{NAME}@{word}", tree)
    listed = mounted.model(NAME)["known_revisions"]
    assert {entry["revision"] for entry in listed} == {model["revision"] for model in known}
    assert [entry["revision"] for entry in listed if entry["current"] and entry["confirmed"]] == [known[0]["revision"]]


def test_the_listing_restores_the_same_bytes_on_another_node_and_nothing_else(weightfs, root, origin, small):
    """From a source without digests: all of it is fetched before the name appears."""
    (root / "m/weightfs.json").unlink()
    first = weightfs({NAME: f"file://{root / 'm'}"})
    first.wait(NAME)
    (saved,) = json.loads(first.cli("ls", "--json").stdout)["models"][0]["known_revisions"]
    other = weightfs({})
    # Copied since: other inodes, and so another key.
    shutil.copytree(root / "m", root / "copy")
    moved = saved["reference"].replace("/m@", "/copy@")
    other.cli("add", "org/again", moved, "--expect", saved["snapshot"])
    assert other.model("org/again")["snapshot"] == saved["snapshot"] and other.model("org/again")["complete"]
    same_tree(other.mount / "org/again", small)

    (root / "copy/config.json").write_text("{}")
    for source, expect in ((moved, []), (moved.partition("@")[0], ["--expect", saved["snapshot"]])):
        refused = other.cli("add", "org/wrong", source, *expect, check=False)
        assert refused.returncode == 1 and saved["snapshot"] in refused.stderr
        assert not (other.mount / "org/wrong").exists()
    assert other.cli("update", "org/again", check=False).returncode == 1
    same_tree(other.mount / "org/again", small)


@pytest.mark.short
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_listing_restores_what_a_manifest_gave_on_a_node_that_knows_nothing_else(weightfs, root, origin, small,
                                                                                     certificates, scheme):
    secure = scheme == "https"
    config = {"ca_bundle": str(certificates.ca)} if secure else {}
    source = origin(root=root, **({"tls": certificates} if secure else {})).url("m/")
    assert source.startswith(f"{scheme}://")
    first = weightfs({NAME: source}, config=config)
    listed = json.loads(first.cli("ls", "--json").stdout)
    first.stop()
    (saved,) = listed["models"][0]["known_revisions"]

    def add(mounted, name):
        return mounted.cli("add", name, saved["reference"], "--expect", saved["snapshot"], check=False)
    other = weightfs({}, config=config)  # a store and a state of its own
    assert add(other, "org/again").returncode == 0
    other.wait("org/again")
    again, = json.loads(other.cli("ls", "--json").stdout)["models"][0]["known_revisions"]
    assert {key: again[key] for key in ("snapshot", "key", "reference")} == \
        {key: saved[key] for key in ("snapshot", "key", "reference")}
    same_tree(other.mount / "org/again", small)

    edit(root, 1)  # the source has something else now
    refused = add(other, "org/wrong")
    assert refused.returncode == 1 and saved["snapshot"] in refused.stderr
    assert not (other.mount / "org/wrong").exists()
    assert other.cli("update", "org/again", check=False).returncode == 1
    same_tree(other.mount / "org/again", small)


def test_with_require_digest_what_may_change_is_refused(weightfs, root, origin):
    free = weightfs({})
    mounted = weightfs({}, config={"require_digest": True})
    listed, bare = origin(root=root).url("m/"), f"file://{root / 'm'}"
    free.cli("add", NAME, listed)
    refused = mounted.cli("add", NAME, listed, check=False)
    assert refused.returncode == 1 and "require_digest" in refused.stderr
    mounted.cli("add", NAME, f"{listed}@{free.model(NAME)['snapshot']}")
    assert not mounted.json("update", NAME)["changed"]
    (root / "m/weightfs.json").unlink()
    refused = mounted.cli("add", "org/bare", bare, check=False)
    assert refused.returncode == 1 and "require_digest" in refused.stderr
    assert mounted.cli("add", "org/bare", bare, "--expect", mounted.model(NAME)["snapshot"]).returncode == 0


def load(mounted, opened, go_on):
    """A loader: shard by shard, path by path, in one process of its own session. Returns the digests."""
    script = ("import hashlib, pathlib, sys\n"
              "for path in sorted(pathlib.Path(sys.argv[1]).glob('*.safetensors')):\n"
              "    with open(path, 'rb') as file:\n"
              "        print(path.name, hashlib.sha256(file.read()).hexdigest(), flush=True)\n"
              "        sys.stdin.readline()\n")
    process = subprocess.Popen([sys.executable, "-c", script, str(mounted.mount / NAME)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    seen = {}
    with process:
        while line := process.stdout.readline():
            name, digest = line.split()
            seen[name] = digest
            if len(seen) == 1:
                opened.set()
                go_on.wait(60)
            process.stdin.write("\n")
            process.stdin.flush()
    assert process.returncode == 0
    return seen


@pytest.fixture
def loading(weightfs, root, origin):
    """A mount, and a loader that has the first shard of it, while the source has new ones."""
    mounted = weightfs({NAME: origin(root=root).url("m/")})
    mounted.wait(NAME)
    opened, go_on = threading.Event(), threading.Event()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        loader = pool.submit(load, mounted, opened, go_on)
        try:
            assert opened.wait(60)
            for shard in sorted((root / "m").glob("*.safetensors")):
                shard.write_bytes(shard.read_bytes()[::-1])
            new = models.describe(root / "m")
            yield mounted, new, pool, loader, go_on
        finally:
            go_on.set()


def shards_of(model):
    return {name: model.files[name].sha256 for name in model.shards}


def test_a_flip_waits_for_a_loader_that_opens_shard_by_shard(loading, small):
    mounted, new, pool, loader, go_on = loading
    update = pool.submit(mounted.json, "update", NAME)
    until(lambda: stage(mounted) == "waiting for a loader", 60, "the update waits")
    assert not update.done()
    go_on.set()
    assert loader.result(60) == shards_of(small), "one revision"
    assert update.result(60)["loader"] == ""
    same_tree(mounted.mount / NAME, new)


def stage(mounted):
    """Of the update that runs: whoever asks for it again joins it."""
    connection = http.client.HTTPConnection("weightfs")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(mounted.socket))
    with contextlib.closing(connection):
        connection.request("POST", f"/v1/models/{NAME}:update?wait=0")
        return json.load(connection.getresponse()).get("progress", {}).get("stage")


def test_a_flip_that_does_not_wait_says_who_was_loading(loading, small):
    mounted, new, _, loader, go_on = loading
    assert mounted.json("update", NAME, "--now")["loader"]
    go_on.set()
    first, *rest = small.shards
    seen = loader.result(60)
    assert seen[first] == small.files[first].sha256
    assert all(seen[name] == new.files[name].sha256 for name in rest)


def test_a_flip_waits_for_a_loader_only_so_long(weightfs, root, origin):
    mounted = weightfs({NAME: origin(root=root).url("m/")}, config={"flip_wait": "1s"})
    mounted.wait(NAME)
    with open(next((mounted.mount / NAME).glob("*.safetensors")), "rb") as shard:
        shard.read(1)
        new = edit(root, 1)
        assert mounted.json("update", NAME)["loader"]
        same_tree(mounted.mount / NAME, new)


def test_prune_removes_what_nobody_needs_and_says_why_the_rest_stays(weightfs, root, origin, small):
    mounted = weightfs({NAME: origin(root=root).url("m/")})
    mounted.wait(NAME)
    first = mounted.model(NAME)
    revisions = []
    for number in range(3):
        tree = edit(root, number)
        mounted.cli("update", NAME)
        revisions.append(mounted.model(NAME)["revision"])
    blobs = len(mounted.blobs())
    with open(mounted.mount / f"{NAME}@{revisions[0]}" / "config.json", "rb") as held:
        would = mounted.json("prune", "--dry-run")
        assert len(mounted.blobs()) == blobs and (mounted.mount / f"{NAME}@{revisions[1]}").exists()
        pruned = mounted.json("prune", NAME)
        assert pruned["removed"] == would["removed"] and [r["revision"] for r in pruned["removed"]] == [revisions[1]]
        assert {r["revision"]: r["kept"] for r in pruned["kept"]} == {
            first["revision"]: "confirmed", revisions[0]: "open"}
        assert held.read() == small.data("config.json")
    assert pruned["blobs"] == 1 and len(mounted.blobs()) == blobs - 1, "the README of one revision"
    assert not (mounted.mount / f"{NAME}@{revisions[1]}").exists()
    same_tree(mounted.mount / NAME, tree)
    same_tree(mounted.mount / f"{NAME}@{first['revision']}", small)
    until(lambda: [r["revision"] for r in mounted.json("prune")["removed"]] == [revisions[0]], 30, "it is closed")


@pytest.mark.short
def test_a_revision_that_has_stood_long_enough_is_confirmed_by_itself(weightfs, root, origin):
    mounted = weightfs({NAME: origin(root=root).url("m/")}, config={"confirm_after": "1s"})
    (root / "m/README.md").write_text("the next")
    models.describe(root / "m")
    mounted.cli("update", NAME)
    until(lambda: (model := mounted.model(NAME))["confirmed"] == model["revision"], 30, "it is confirmed")
    assert mounted.cli("rollback", NAME, check=False).returncode == 3
