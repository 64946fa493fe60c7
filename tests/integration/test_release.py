# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Releases: base, tokenizer and adapters from different places as one tree with one id."""

import json

import pytest

import models
from readers import same_tree


@pytest.mark.short
def test_a_release_is_one_model_of_several_sources(weightfs, nginx, small, folder):
    adapter = models.write_model(folder / "adapter", 1, 1 << 20, seed=5)
    words = folder / "words"
    words.mkdir()
    (words / "tokenizer.json").write_text('{"model": {"type": "BPE", "vocab": {"only": 0}}}')
    parts = ["--part", f"base={nginx.url('small/')}", "--part", f"tokenizer=file://{words}",
             "--part", f"adapters/x=file://{adapter.folder}"]
    mounted = weightfs({})
    refused = mounted.cli("add", "org/m", *parts, check=False)
    assert refused.returncode == 1 and "tokenizer.json" in refused.stderr and "overlay" in refused.stderr

    mounted.cli("add", "org/m", *parts, "--overlay", "tokenizer")
    mounted.cli("pin", "org/m")
    mounted.wait("org/m")
    root = mounted.mount / "org/m"

    def check(adapter):
        same_tree(root, small, [name for name in small.files if name != "tokenizer.json"])
        assert (root / "tokenizer.json").read_bytes() == (words / "tokenizer.json").read_bytes()
        same_tree(root / "adapters/x", adapter)
    check(adapter)
    first = mounted.model("org/m")
    assert first["complete"] and first["pinned"] and len(first["snapshot"]) == 64

    # One part is another: the release is, and goes back as one.
    newer = models.write_model(folder / "newer", 1, 1 << 20, seed=6)
    for name in [*adapter.files, "weightfs.json"]:
        (adapter.folder / name).write_bytes(newer.data(name))
    mounted.cli("update", "org/m")
    check(newer)
    assert mounted.model("org/m")["snapshot"] != first["snapshot"]
    mounted.cli("rollback", "org/m")
    assert mounted.model("org/m")["snapshot"] == first["snapshot"]

    # Also after a restart, with an empty store: what the parts still have is shown.
    mounted.cli("update", "org/m")
    mounted.cli("unpin", "org/m")
    mounted.cli("evict", "org/m")
    mounted.wait_new_daemon(mounted.kill_daemon())
    check(newer)


@pytest.mark.short
def test_the_listing_of_a_release_restores_all_of_it_on_another_node(weightfs, nginx, small, folder):
    adapter = models.write_model(folder / "adapter", 1, 1 << 20, seed=7)
    first = weightfs({})
    first.cli("add", "org/m", "--part", f"base={nginx.url('small/')}", "--part", f"adapters/x=file://{adapter.folder}")
    listed = json.loads(first.cli("ls", "--json").stdout)
    first.stop()
    (saved,) = listed["models"][0]["known_revisions"]

    def add(mounted, name):
        return mounted.cli("add", name, saved["reference"], "--expect", saved["snapshot"], check=False)
    other = weightfs({})  # a store and a state of its own
    restored = add(other, "org/again")
    assert restored.returncode == 0, restored.stderr
    other.wait("org/again")
    again, = json.loads(other.cli("ls", "--json").stdout)["models"][0]["known_revisions"]
    assert {key: again[key] for key in ("snapshot", "key", "reference")} == \
        {key: saved[key] for key in ("snapshot", "key", "reference")}
    same_tree(other.mount / "org/again", small)
    same_tree(other.mount / "org/again/adapters/x", adapter)

    # One part has something else now: nothing of it is taken.
    newer = models.write_model(folder / "newer", 1, 1 << 20, seed=8)
    for name in [*adapter.files, "weightfs.json"]:
        (adapter.folder / name).write_bytes(newer.data(name))
    refused = add(other, "org/wrong")
    assert refused.returncode == 1 and saved["snapshot"] in refused.stderr
    assert not (other.mount / "org/wrong").exists()
