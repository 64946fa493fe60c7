# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""An ordinary cache on a read-only bind mount: the measure of what a cache under a mount can do, and which
of its parts are needed for it."""

import contextlib
import shutil
import subprocess

import pytest

import hub_matrix
from hub import Hub
from hub_clients import RELEASES, HubClient
from repositories import Repository
from test_hub_clients import DIGESTS, FILES, NAME

FOLDER = "models--org--model"


@contextlib.contextmanager
def read_only(cache, at, *without):
    """A copy of a cache less some of its parts, mounted read-only."""
    copy, mount = at / "copy", at / "mounted"
    shutil.copytree(cache, copy, symlinks=True)
    for lock in (copy / ".locks").rglob("*.lock"):
        lock.unlink()
    (copy / "version.txt").write_text("1")
    for part in without:
        shutil.rmtree(copy / part) if (copy / part).is_dir() else (copy / part).unlink()
    mount.mkdir()
    subprocess.run(["mount", "--bind", copy, mount], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", mount], check=True)
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


@pytest.fixture
def model():
    return Repository(NAME, FILES)


@pytest.fixture
def hub(model):
    with Hub(model) as server:
        yield server


@pytest.fixture
def cache(hub, tmp_path):
    """What the newest release leaves behind."""
    client = HubClient("newest", tmp_path / "writer", hub.endpoint)
    client.call("snapshot", {"repo_id": NAME})
    return client.cache


@pytest.fixture(params=RELEASES)
def release(request):
    return request.param


def test_the_branch_is_where_it_is_at_the_hub(cache, hub, model, release, tmp_path):
    with read_only(cache, tmp_path) as mount:
        client = HubClient(release, tmp_path / "home", hub.endpoint, mount)
        found = hub_matrix.check(client, hub_matrix.rows(NAME, model.head.id, "config.json"))
        assert found["snapshot of main"]["value"]["files"] == DIGESTS
        warnings = client.call("scan")["warnings"]
        assert [text.rsplit("/", 1)[-1] for text in warnings] == \
            (["CACHEDIR.TAG"] if release == "0.36" else []) + ["version.txt"]


def test_the_branch_has_moved_on_at_the_hub(cache, hub, model, release, tmp_path):
    cached = model.head.id
    model.commit(FILES | {"config.json": b"changed"})
    with read_only(cache, tmp_path) as mount:
        client = HubClient(release, tmp_path / "home", hub.endpoint, mount)
        hub_matrix.check(client, hub_matrix.rows(NAME, cached, "config.json", "stale"))


def test_what_each_part_is_for(cache, hub, model, tmp_path):
    """Taken away, this is what no longer works; with it, everything above does."""
    def outcome(client, call, **arguments):
        return hub_matrix.described(client.calls((call, {"repo_id": NAME} | arguments))[0])

    for release in RELEASES:
        # 1.25 and newer make no lock for what is there.
        (tmp_path / release).mkdir()
        with read_only(cache, tmp_path / release, ".locks") as mount:
            client = HubClient(release, tmp_path / "home" / release, hub.endpoint, mount)
            assert outcome(client, "file", filename="config.json") == \
                ("ok" if release == "newest" else hub_matrix.READ_ONLY)
    (tmp_path / "trees").mkdir()
    with read_only(cache, tmp_path / "trees", f"{FOLDER}/trees") as mount:
        client = HubClient("newest", tmp_path / "home/trees", hub.endpoint, mount)
        hub.clear()
        assert outcome(client, "snapshot", revision=model.head.id) == "ok"
        assert [request.kind for request in hub.requests] == ["tree"]
    (tmp_path / "all").mkdir()
    with read_only(cache, tmp_path / "all") as mount:
        client = HubClient("newest", tmp_path / "home/all", hub.endpoint, mount)
        hub.clear()
        assert outcome(client, "snapshot", revision=model.head.id) == "ok"
        assert not hub.requests
        assert outcome(client, "snapshot") == "ok"
        assert [request.kind for request in hub.requests] == ["info"]
