# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Models that the configuration declares: made so at start, on reload and upon SIGHUP, never under a reader."""

import json
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

        assert mounted.json("reload") == diff
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
