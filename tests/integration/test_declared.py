# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Models that the configuration declares: made so at start, on reload and upon SIGHUP, never under a reader."""

import json
import mmap
import os
import signal

import pytest

import models
from readers import same_tree
from waiting import until


def names(mounted):
    return {model["name"]: model for model in mounted.json("ls")["models"]}


def declare(mounted, *entries, **settings):
    (mounted.folder / "config.json").write_text(json.dumps({"models": list(entries)} | settings))


@pytest.mark.short
def test_the_configuration_is_made_so_at_start_and_on_reload(weightfs, nginx, small, folder):
    source = nginx.url("small/")
    mounted = weightfs({}, config={"models": [{"name": "org/kept", "source": source, "pin": True, "warm": True},
                                              {"name": "org/dropped", "source": source}]})
    until(lambda: names(mounted)["org/kept"]["complete"], 60, "what is declared warm is fetched")
    assert names(mounted)["org/kept"]["pinned"]
    mounted.cli("add", "org/by-hand", source)
    assert mounted.json("config", "diff") == {"models": [], "tenants": False, "settings": []}

    other = models.write_model(folder / "other", 1, 1 << 20, seed=77)
    moved = {"name": "org/kept", "source": f"file://{other.folder}"}
    added = {"name": "org/added", "source": source}
    declare(mounted, moved, added, connections=8)
    with open(mounted.mount / "org/dropped" / small.shards[0], "rb") as held:
        diff = mounted.json("config", "diff")
        assert {(model["name"], model["change"]) for model in diff["models"]} == {
            ("org/dropped", "remove"), ("org/kept", "change source"), ("org/kept", "unpin"), ("org/added", "add")}
        assert [(setting["name"], setting["configured"]) for setting in diff["settings"]] == [("connections", "8")]
        assert names(mounted).keys() == {"org/kept", "org/dropped", "org/by-hand"}, "diff changes nothing"

        # It says what became of each, and ends with 3, for one is read and goes later.
        done = mounted.cli("reload", "--json", check=False)
        assert done.returncode == 3, done
        told = json.loads(done.stdout)
        assert {(model["name"], model["change"]): model["outcome"] for model in told["models"]} == {
            (model["name"], model["change"]): "deferred" if model["name"] == "org/dropped" else "applied"
            for model in diff["models"]}
        assert told["settings"] == diff["settings"] and told["settings"][0]["takes"] == "restart"
        assert names(mounted).keys() == {"org/kept", "org/dropped", "org/by-hand", "org/added"}
        same_tree(mounted.mount / "org/kept", other)
        assert not names(mounted)["org/kept"]["pinned"]
        assert held.read(1 << 16) == small.data(small.shards[0])[:1 << 16]
    until(lambda: "org/dropped" not in names(mounted), 30, "it goes once nobody reads it")
    assert mounted.json("config", "diff")["models"] == []


@pytest.mark.short
def test_sighup_reads_it_again_and_a_mistake_changes_nothing(weightfs, nginx):
    first = {"name": "org/first", "source": nginx.url("small/")}
    second = {"name": "org/second", "source": nginx.url("small/")}
    mounted = weightfs({}, config={"models": [first]})
    declare(mounted, first, second)
    mounted.process.send_signal(signal.SIGHUP)
    until(lambda: names(mounted).keys() == {"org/first", "org/second"}, 30, "the keeper has passed it on")

    for wrong in ({"name": "org/first", "source": "ftp://a/b"}, {"name": "org/first/inner", "source": first["source"]}):
        declare(mounted, first, wrong) if "inner" in wrong["name"] else declare(mounted, wrong)
        for command in (["reload"], ["config", "diff"]):
            assert mounted.cli(*command, check=False).returncode == 1
        assert names(mounted).keys() == {"org/first", "org/second"}

    declare(mounted, {"name": "org/first"})
    failed = mounted.cli("reload", check=False)
    assert failed.returncode == 1 and "models[0]" in failed.stderr
    assert mounted.cli("config", "diff", check=False).returncode == 1
    pid = mounted.pid
    mounted.process.send_signal(signal.SIGHUP)
    until(lambda: "nothing is changed" in mounted.log_text(), 30, "the log says so")
    assert mounted.pid == pid and names(mounted).keys() == {"org/first", "org/second"}

    # What is declared goes at the next start, too.
    mounted.stop()
    mounted.config = {"models": [second]}
    mounted.start()
    until(lambda: names(mounted).keys() == {"org/second"}, 30, "what the configuration dropped meanwhile is gone")


@pytest.mark.short
def test_reload_says_of_each_model_whether_it_was_applied_deferred_or_refused(weightfs, nginx, small, folder):
    source = nginx.url("small/")
    kept = {"name": "org/kept", "source": source}
    mounted = weightfs({}, config={"models": [kept, {"name": "org/dropped", "source": source}]})
    snapshot = mounted.model("org/kept")["snapshot"]
    partial = models.write_model(folder / "partial", 2, 1 << 20, seed=79)
    gone = partial.shards[0]
    partial.path(gone).unlink()
    models.describe(partial.folder)
    lacking = f"file://{partial.folder}"
    good = [kept, {"name": "org/right", "source": source, "expect": snapshot},
            {"name": "org/partial", "source": lacking, "allow_missing": True}]
    settings = {"connections": 8, "fill_bandwidth": 500_000_000}

    def reload():
        done = mounted.cli("reload", "--json", check=False)
        told = json.loads(done.stdout)
        return done.returncode, {model["name"]: (model["outcome"], model.get("reason", "")) for model in told["models"]}, told
    with open(mounted.mount / "org/dropped" / small.shards[0], "rb") as held:
        declare(mounted, *good, {"name": "org/wrong", "source": source, "expect": "0" * 64},
                {"name": "org/lacking", "source": lacking}, **settings)
        code, models_told, told = reload()
        assert code == 1, told
        assert {name: outcome for name, (outcome, _) in models_told.items()} == {
            "org/right": "applied", "org/partial": "applied", "org/dropped": "deferred",
            "org/wrong": "refused", "org/lacking": "refused"}
        assert "reads it" in models_told["org/dropped"][1] and snapshot in models_told["org/wrong"][1]
        assert gone in models_told["org/lacking"][1]
        assert {one["name"]: one["takes"] for one in told["settings"]} == {"connections": "restart", "fill_bandwidth": "reload"}
        assert mounted.status()["bandwidth"]["fill"]["bytes_per_second"] == 500_000_000
        assert names(mounted).keys() == {"org/kept", "org/dropped", "org/right", "org/partial"}

        declare(mounted, *good, **settings)
        code, models_told, told = reload()
        assert code == 3 and models_told.keys() == {"org/dropped"}, told
        assert [one["name"] for one in told["settings"]] == ["connections"], "the other is in effect"
        assert "org/dropped: remove: deferred, somebody reads it" in mounted.cli("reload", check=False).stdout
        assert held.read(1) == small.data(small.shards[0])[:1]
    until(lambda: "org/dropped" not in names(mounted), 30, "it goes once nobody reads it")
    assert reload()[:2] == (0, {})


@pytest.mark.short
def test_who_reads_a_declared_model_that_gets_another_source_finishes_on_the_old_bytes(weightfs, nginx, small, folder):
    name = "org/m"
    mounted = weightfs({}, config={"models": [{"name": name, "source": nginx.url("small/")}], "flip_wait": "0"})
    other = models.write_model(folder / "other", len(small.shards), 1 << 20, seed=78)
    assert other.shards == small.shards, "the same paths, other bytes"
    root, first, last = mounted.mount / name, small.shards[0], small.shards[-1]
    folder_before = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with open(root / first, "rb") as held, mmap.mmap(held.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            begin = held.read(1 << 16)
            declare(mounted, {"name": name, "source": f"file://{other.folder}"}, flip_wait="0")
            mounted.cli("reload")
            same_tree(root, other)
            assert begin + held.read() == small.data(first)
            assert mapped[:] == small.data(first)
            # A loader that began in the old folder opens the rest of it there.
            with open(os.open(last, os.O_RDONLY, dir_fd=folder_before), "rb") as late:
                assert late.read() == small.data(last)
    finally:
        os.close(folder_before)
    same_tree(root, other)


def test_a_file_that_breaks_does_not_end_the_mount_with_the_daemon(weightfs, nginx, small, mode):
    """The successor of a killed daemon goes by what the file had when it was right, and says so."""
    source = nginx.url("small/")
    mounted = weightfs({}, config={"models": [{"name": "org/kept", "source": source}], "connections": 7},
                       passthrough=mode == "passthrough")
    with open(mounted.mount / "org/kept" / small.shards[0], "rb", buffering=0) as held:
        assert held.read(4096) == small.data(small.shards[0])[:4096]
        (mounted.folder / "config.json").write_text('{"connections": "a few"')
        for _ in range(2):  # the successor's successor, too
            mounted.wait_new_daemon(mounted.kill_daemon())
        assert held.read(4096) == small.data(small.shards[0])[4096:8192]
        same_tree(mounted.mount / "org/kept", small)
    status = mounted.status()
    assert "not JSON" in status["configuration_mistake"]
    assert "as it was before" in mounted.cli("status").stdout
    refused = mounted.cli("reload", check=False)
    assert refused.returncode == 1 and "not JSON" in refused.stderr

    declare(mounted, {"name": "org/other", "source": source})
    mounted.cli("reload")
    assert mounted.status()["configuration_mistake"] == ""
    (mounted.folder / "config.json").unlink()
    mounted.wait_new_daemon(mounted.kill_daemon())
    assert names(mounted).keys() == {"org/other"}, "what it had last is what counts"


def test_reload_takes_over_tenants_and_refuses_floors_beyond_the_capacity(weightfs, nginx, folder):
    mounted = weightfs({"search/small": nginx.url("small/")}, config={
        "capacity": "100MB", "tenants": {"search": {"floor": "10MB", "match": {"path": "search/"}}}})

    def tenants():
        return {one["name"]: one["floor"] for one in mounted.status()["policy"]["tenants"]}
    assert tenants() == {"search": 10_000_000}
    wanted = {"search": {"floor": "60MB", "match": {"path": "search/"}},
              "lab": {"floor": "50MB", "match": {"path": "lab/"}}}
    declare(mounted, capacity="100MB", tenants=wanted)
    refused = mounted.cli("reload", check=False)
    assert refused.returncode == 1 and "capacity" in refused.stderr, refused
    checked = mounted.cli("config", "check", "--config", mounted.folder / "config.json", "--store", mounted.store,
                          check=False)
    assert checked.returncode == 2 and "capacity" in checked.stderr, checked
    assert tenants() == {"search": 10_000_000}
    wanted["lab"]["floor"] = "30MB"
    declare(mounted, capacity="100MB", tenants=wanted)
    mounted.cli("reload")
    assert tenants() == {"search": 60_000_000, "lab": 30_000_000}


def test_rm_tells_beforehand_what_would_go(weightfs, nginx, small):
    source = nginx.url("small/")
    mounted = weightfs({"org/one": source, "org/two": source})
    mounted.wait("org/one")
    blobs = mounted.blobs()
    assert mounted.json("rm", "org/one", "--dry-run")["bytes"] == 0, "the other has the same files"
    mounted.cli("rm", "org/two")
    would = mounted.json("rm", "org/one", "--dry-run")
    assert would["bytes"] == sum(file.size for file in small.files.values())
    assert mounted.blobs() == blobs and names(mounted).keys() == {"org/one"}
    assert mounted.json("rm", "org/one")["bytes"] == would["bytes"]
    until(lambda: not mounted.blobs(), 10, "all of it is gone")
