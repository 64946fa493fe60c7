# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""transformers loads small models by the name of their repository from the hub of these tests."""

import pathlib

import pytest

from hub import Hub
from hub_clients import HubClient
from repositories import Repository


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in pathlib.Path(folder).rglob("*")
            if path.is_file()}


@pytest.mark.seconds(400)
def test_from_pretrained_online_then_offline(tmp_path):
    maker = HubClient("newest", tmp_path / "made")
    maker.models("make", str(tmp_path / "made"))
    made = {name: tmp_path / "made" / name for name in ("sharded", "custom")}
    assert len([name for name in files(made["sharded"]) if name.endswith(".safetensors")]) > 2
    with Hub(*(Repository(f"org/{name}", files(folder)) for name, folder in made.items())) as hub:
        client = HubClient("newest", tmp_path / "home", hub.endpoint)
        names = [f"org/{name}" for name in made]
        expected = maker.models("load", *map(str, made.values()))
        online = client.models("load", *names)
        asked = len(hub.requests)
        offline = client.models("load", *names, HF_HUB_OFFLINE="1")
        assert len(hub.requests) == asked
        assert [model["class"] for model in expected] == ["LlamaForCausalLM", "OwnModel"]
        for plain, first, second in zip(expected, online, offline):
            for key in set(plain) - {"seconds"}:
                assert first[key] == second[key] == plain[key], key
