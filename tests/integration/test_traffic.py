# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Traffic through a running daemon: its hit rate is the replay's, and shadow foretells it.

WEIGHTFS_TRACE=FILE.csv.gz replays a recorded trace (columns user and artifact) in place of a made-up one.
"""

import os
import pathlib

import pytest

import models
import traffic
from test_modes import tree

MIB = 1 << 20
HOLDS = 8           # artifacts, all of one size
LOADS = 400


@pytest.fixture(scope="module")
def rows():
    trace = os.environ.get("WEIGHTFS_TRACE")  # made up where there is none: that can be had everywhere
    return traffic.recorded(trace, LOADS) if trace else traffic.made_up(LOADS, artifacts=40, users=60, seed=3)


@pytest.fixture
def node(weightfs, origin, rows, folder):
    """A mount of all artifacts of the trace, each a model of one file, with room for a few of them."""
    root = folder / "artifacts"
    expected = {}
    for number, artifact in enumerate(sorted({artifact for _, artifact in rows})):
        at = root / artifact
        at.mkdir(parents=True)
        (at / "model.safetensors").write_bytes(b"".join(models.noise(1000 + number, MIB)))
        model = models.describe(at)
        expected[artifact] = (f"{artifact}/model.safetensors", model.files["model.safetensors"].sha256)
    source = origin(root=root)
    mounted = weightfs({artifact: source.url(f"{artifact}/") for artifact in expected},
                       config={"capacity": str(HOLDS * MIB), "min_free": "0", "mode": "shadow"})
    mounted.expected = expected
    return mounted


def test_the_hit_rate_of_a_node_is_that_of_the_replay_and_shadow_foretells_it(node, rows, folder):
    before = tree(node.store)
    _, imagined = traffic.drive(node, rows, node.expected)
    assert imagined["source"]["bytes"] >= len(rows) * MIB, "shadow keeps nothing"
    assert (imagined["cache"]["hits"], imagined["cache"]["misses"]) == (0, 0)
    assert tree(node.store) == before, "and writes nothing to the store"

    node.cli("mode", "prod")
    found, real = traffic.drive(node, rows, node.expected)
    trace = pathlib.Path(folder / "trace.csv")
    traffic.write_trace(rows, trace)
    replay = node.json("replay", trace, "--capacity", HOLDS, "--policy", "second-reference")["policies"][0]
    assert replay["policy"] == "second-reference"

    again = traffic.repeated(rows)
    rate = sum(found) / len(rows)
    on_repeated = sum(hit for hit, repeat in zip(found, again) if repeat) / sum(again)
    print(f"hit rate {rate:.4f}, replay {replay['object_hit_rate']:.4f}; repeated jobs {on_repeated:.4f}, "
          f"replay {replay['repeated_job_hit_rate']:.4f}; evictions {real['policy']['evictions']}, "
          f"replay {replay['evictions']}; shadow {imagined['shadow']}")
    assert rate == pytest.approx(replay["object_hit_rate"], abs=1e-3)
    assert on_repeated == pytest.approx(replay["repeated_job_hit_rate"], abs=1e-3)
    assert on_repeated >= 0.9
    assert real["policy"]["evictions"] == replay["evictions"]

    shadow = imagined["shadow"]
    hits, misses = real["cache"]["hits"], real["cache"]["misses"]
    assert shadow["hit_rate"] == pytest.approx(hits / (hits + misses), abs=0.01)
    assert (shadow["hits"], shadow["misses"]) == (hits, misses)
    assert imagined["policy"]["evictions"] == real["policy"]["evictions"]
