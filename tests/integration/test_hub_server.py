# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The independent hub server is there, and the hub's own client reads from it and through it."""

import pytest

from hub import Hub
from hub_clients import HubClient
from hub_server import Olah
from repositories import Repository
from test_hub_clients import DIGESTS, FILES, NAME, digests

UNFORWARDED = set("#?%")   # what olah does not encode when it asks for a file in its turn


def test_git_repositories(tmp_path):
    with Olah(tmp_path / "olah") as olah:
        commit = olah.add(NAME, FILES)
        client = HubClient("newest", tmp_path, olah.endpoint)
        found = client.call("snapshot", {"repo_id": NAME})
        assert found["folder"].endswith(commit) and found["files"] == DIGESTS
        changed = FILES | {"config.json": b'{"second": 1}\n'}
        second = olah.add(NAME, changed)
        found = client.call("snapshot", {"repo_id": NAME})
        assert found["folder"].endswith(second) and found["files"] == digests(changed)
        sizes = client.call("tree", {"repo_id": NAME})
        assert {name: size for name, size in sizes.items() if size is not None} == \
            {name: len(content) for name, content in changed.items()}


@pytest.mark.parametrize("kind", ["model", "dataset"])
def test_a_mirror_in_front_of_the_hub(tmp_path, kind):
    files = {name: content for name, content in FILES.items() if not UNFORWARDED & set(name)}
    repository = Repository(NAME, files, kind)
    with Hub(repository) as hub, Olah(tmp_path / "olah", hub) as olah:
        for home in ("first", "second"):
            client = HubClient("newest", tmp_path / home, olah.endpoint)
            found = client.call("snapshot", {"repo_id": NAME, "repo_type": kind})
            assert found["folder"].endswith(repository.head.id) and found["files"] == digests(files)
        # The second one got it from the mirror alone.
        assert hub.coverage("model.safetensors", len(files["model.safetensors"])) == (1, 1)
