# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The hub of these tests is faithful: the hub's own client, in three releases, downloads from it into an
ordinary cache and takes its errors for what they are."""

import hashlib

import pytest

import hostile
import hub_faults
from hub import Hub
from hub_clients import RELEASES, HubClient
from repositories import Repository
from tls import Certificates

WEIGHTS = b"".join(hashlib.sha256(b"%d" % at).digest() for at in range(20_000))
FILES = {
    ".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n",
    "README.md": b"# Made up\n" * 400,
    "config.json": b'{"architectures": ["MadeUp"]}\n',
    "empty.txt": b"",
    "model.safetensors": WEIGHTS,
    "with space.txt": b"space",
    "hash#tag.json": b"{}",
    "what?.md": b"question",
    "100%.txt": b"percent",
    "%41%2F.txt": b"looks encoded",
    "plus+and&is=.txt": b"plus",
    "d\u00e9j\u00e0/\u65e5\u672c\u8a9e.bin": b"unicode" * 100,
    "deep/er/than/that/part.safetensors": WEIGHTS[:1000],
}
DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
TOKENS = {"hf_reader": "reader", "hf_stranger": "stranger"}
NAME = "org/model"


def digests(files):
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


@pytest.fixture
def model():
    return Repository(NAME, FILES)


def public(model):
    return [model, Repository("org/data", FILES, "dataset"), Repository("org/room", FILES, "space"),
            Repository("alone", FILES)]


@pytest.fixture
def hub(model):
    with Hub(*public(model), page=5) as server:
        yield server


@pytest.fixture(params=RELEASES)
def client(request, hub, tmp_path):
    return HubClient(request.param, tmp_path, hub.endpoint)


def test_a_snapshot_has_every_file_under_its_name(client, hub, model):
    found = client.call("snapshot", {"repo_id": NAME})
    assert found["files"] == DIGESTS
    folder = client.cache / "models--org--model"
    assert found["folder"] == str(folder / "snapshots" / model.head.id)
    assert (folder / "refs/main").read_text() == model.head.id
    for name, entry in model.head.files.items():
        assert (folder / "snapshots" / model.head.id / name).resolve() == folder / "blobs" / entry.etag
    assert hub.coverage("model.safetensors", len(WEIGHTS)) == (1, 1)
    assert {request.kind for request in hub.requests} >= {"info", "resolve", "cache", "cdn"}


@pytest.mark.parametrize("kind, name", [("dataset", "org/data"), ("space", "org/room"), ("model", "alone")])
def test_other_kinds_of_repositories(client, kind, name):
    assert client.call("snapshot", {"repo_id": name, "repo_type": kind})["files"] == DIGESTS


def test_the_tree_is_read_over_all_its_pages(client, hub, model):
    found = client.call("tree", {"repo_id": NAME})
    assert {name: size for name, size in found.items() if size is not None} == \
        {name: len(content) for name, content in FILES.items()}
    assert {name for name, size in found.items() if size is None} == \
        {"d\u00e9j\u00e0", "deep", "deep/er", "deep/er/than", "deep/er/than/that"}
    pages = hub.asked("tree")
    assert len(pages) == 4 and all("cursor" in page.query for page in pages[1:])
    assert client.call("info", {"repo_id": NAME, "files_metadata": True}) == {
        "sha": model.head.id, "files": {name: len(content) for name, content in FILES.items()}}
    assert client.call("paths", {"repo_id": NAME, "paths": ["deep", "what?.md", "none"]}) == {
        "deep": model.head.folders["deep"], "what?.md": model.head.files["what?.md"].blob_id}


def test_a_pull_request_and_a_branch_that_moves(client, model):
    first, other = model.head.id, FILES | {"config.json": b'{"pull": 1}\n'}
    pull = model.commit(other, "refs/pr/1")
    found = client.call("snapshot", {"repo_id": NAME, "revision": "refs/pr/1"})
    assert found["folder"].endswith(pull) and found["files"] == digests(other)
    assert (client.cache / "models--org--model/refs/refs/pr/1").read_text() == pull
    assert client.call("file", {"repo_id": NAME, "filename": "config.json"})["path"].split("/")[-2] == first
    second = model.commit(FILES | {"config.json": b'{"second": 1}\n'})
    found = client.call("file", {"repo_id": NAME, "filename": "config.json"})
    assert found["path"].split("/")[-2] == second
    assert found["sha256"] == hashlib.sha256(b'{"second": 1}\n').hexdigest()
    old = client.call("file", {"repo_id": NAME, "filename": "config.json", "revision": first})
    assert old["sha256"] == DIGESTS["config.json"]


@pytest.mark.parametrize("release", RELEASES)
def test_each_error_is_told_from_the_others(release, model, tmp_path):
    """Over TLS: without, the client does not take a bare 401 for what it is."""
    tls = Certificates(tmp_path / "tls")
    closed = [Repository("org/secret", FILES, private=True, readers={"reader"}),
              Repository("org/gated", FILES, gated="manual", readers={"reader"}),
              Repository("org/gone", FILES, disabled=True)]
    with Hub(*public(model), *closed, tokens=TOKENS, tls=tls) as hub:
        client = HubClient(release, tmp_path, hub.endpoint, ca=tls.ca)
        missing = {"repo_id": "org/none"}, {"repo_id": "org/secret"}
        cases = [("hf_stranger", {"repo_id": "org/none"}, "RepositoryNotFoundError"),
                 ("hf_stranger", {"repo_id": "org/secret"}, "RepositoryNotFoundError"),
                 ("hf_stranger", {"repo_id": "org/gated"}, "GatedRepoError"),
                 (False, {"repo_id": "org/gated"}, "GatedRepoError"),
                 (False, {"repo_id": "org/gone"}, "DisabledRepoError"),
                 (False, {"revision": "none"}, "RevisionNotFoundError"),
                 (False, {"filename": "none.json"}, "EntryNotFoundError"),
                 *((False, arguments, "RepositoryNotFoundError") for arguments in missing)]
        calls = [("file", {"repo_id": NAME, "filename": "config.json", "token": token} | arguments)
                 for token, arguments, _ in cases]
        outcomes = client.calls(*calls, ("info", {"repo_id": NAME, "token": "hf_dead"}))
        for (_, arguments, expected), outcome in zip(cases, outcomes):
            assert any(name.endswith(expected) for name in outcome["error"]), (arguments, outcome)
        assert outcomes[-1]["error"][0] == "HfHubHTTPError"
        commit = model.head.id
        assert (client.cache / "models--org--model/.no_exist" / commit / "none.json").exists()
        for name in ("org/gated", "org/secret"):
            assert client.call("snapshot", {"repo_id": name, "token": "hf_reader"})["files"] == DIGESTS
        assert not [request for request in hub.asked("cdn") if request.token]
        assert {request.token for request in hub.asked("resolve", repository="org/secret")} >= {"hf_reader"}


def test_a_limit_is_waited_for(client, hub):
    hub.limits["api"] = (2, 2)
    assert len(client.call("tree", {"repo_id": NAME})) == len(FILES) + 5
    statuses = [request.status for request in hub.asked("tree")]
    assert statuses.count(200) == 4 and statuses.count(429) >= 1


def test_what_a_mirror_changes(client, hub, model):
    hub.faults["resolve"] = [hub_faults.location(hub_faults.absolute(hub)),
                             hub_faults.only("HEAD", hub_faults.detour)]
    if client.release in ("0.36", "1.24"):  # these follow relative targets alone
        hub.faults["resolve"] = hub.faults["resolve"][1:]
    assert client.call("snapshot", {"repo_id": NAME})["files"] == DIGESTS


def test_a_download_that_stalls_is_taken_up_again(client, hub):
    hub.faults["cdn", "model.safetensors"] = [hostile.once(hostile.stall(100_000))]
    arguments = {"repo_id": NAME, "filename": "model.safetensors"}
    found = client.call("file", arguments, HF_HUB_DOWNLOAD_TIMEOUT="1")
    assert found["sha256"] == DIGESTS["model.safetensors"]
    assert len(hub.bodies("model.safetensors")) == 2


def test_a_renamed_repository_is_found(client, hub):
    hub.renamed["org/former"] = NAME
    assert client.call("snapshot", {"repo_id": "org/former"})["files"] == DIGESTS


def test_a_url_signed_the_other_way(client, hub):
    hub.signing = "cloudfront"
    found = client.call("file", {"repo_id": NAME, "filename": "model.safetensors"})
    assert found["sha256"] == DIGESTS["model.safetensors"]
    assert "Expires" in hub.asked("cdn")[0].query


def test_another_protocol_that_is_announced_is_not_needed(client, hub):
    """Beside the sha256, there is a second hash of the same length that is none."""
    other = hub.add(Repository("org/xet", FILES, xet=True))
    assert client.call("snapshot", {"repo_id": "org/xet"})["files"] == DIGESTS
    entry = other.head.files["model.safetensors"]
    assert (client.cache / "models--org--xet/blobs" / entry.sha256).exists() and entry.xet_hash != entry.sha256
