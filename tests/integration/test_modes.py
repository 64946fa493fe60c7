# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The modes prod, off and shadow: what they keep, what they leave alone, and the way from one to another."""

import pytest

import models
from fleet import MB, SHARD, SHARDS
from readers import same_tree


def tree(folder):
    """Every file of a directory: its bytes, and what a write would change beside them."""
    return {str(path): (status.st_mtime_ns, status.st_ino, models.sha256(path) if path.is_file() else "")
            for path in sorted(folder.rglob("*")) if (status := path.stat())}


@pytest.mark.short
def test_a_mode_is_changed_at_run_time_and_holds_over_a_crash(cache, fleet):
    mounted = cache(["org/m0", "org/m1"])
    model = fleet["org/m0"]
    mounted.wait("org/m0")
    held = open(mounted.mount / "org/m0" / "model-00001-of-00002.safetensors", "rb")
    with held:
        assert mounted.cli("mode", "off").stdout == "off\n"
        before = tree(mounted.store)
        pulled = mounted.status()["source"]["bytes"]
        same_tree(mounted.mount / "org/m0", model)
        assert mounted.status()["source"]["bytes"] >= pulled + SHARD, "off reads past the store"
        same_tree(mounted.mount / "org/m1", fleet["org/m1"])
        assert tree(mounted.store) == before
        status = mounted.status()
        assert (status["mode"], status["policy"]["used"]) == ("off", 0)
        assert mounted.cli("warm", "org/m1", check=False).returncode == 1

        mounted.wait_new_daemon(mounted.kill_daemon())
        assert mounted.status()["mode"] == "off"
        assert held.read(MB) == model.data("model-00001-of-00002.safetensors")[:MB]

    assert mounted.cli("mode", "prod").stdout == "prod\n"
    pulled = mounted.status()["source"]["bytes"]
    same_tree(mounted.mount / "org/m0", model)
    assert mounted.status()["source"]["bytes"] == pulled, "what was kept is there again"
    assert mounted.cli("mode", "sometimes", check=False).returncode != 0


@pytest.mark.short
def test_shadow_begins_with_what_the_store_has_and_leaves_every_file_of_it_alone(cache, fleet):
    mounted = cache(["org/m0", "org/m1"])
    mounted.wait("org/m0")
    mounted.stop()
    before = tree(mounted.store)
    mounted.options += ["--mode", "shadow"]
    mounted.start()
    for name in ("org/m0", "org/m1", "org/m1"):
        same_tree(mounted.mount / name, fleet[name])
    status = mounted.status()
    mounted.wait_new_daemon(mounted.kill_daemon())
    mounted.stop()
    assert tree(mounted.store) == before
    assert status["source"]["bytes"] >= fleet["org/m0"].size, "what the store has is not read from it"
    assert status["shadow"]["hits"] >= 2 * SHARDS, "a model that was there, and one that would have been kept"
    assert status["policy"]["used"] >= fleet["org/m0"].size + SHARDS * SHARD
    assert status["store"]["bytes"] == 0
