# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Releases: base, tokenizer and adapters from different places as one tree with one id."""

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
