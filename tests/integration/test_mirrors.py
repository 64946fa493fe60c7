# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A name with several sources: the next goes on where one fails; and files chosen by patterns."""

import contextlib
import hashlib
import json

import pytest

import hostile
import models
from hub import Hub
from repositories import Repository

NAME, SOURCE = "org/m", "hf://org/m"
MB = 1 << 20
SHARD = "model-00001-of-00001.safetensors"
WEIGHTS = b"".join(models.noise(21, 40 * MB))
FILES = {"config.json": b'{"model_type": "x"}\n', "tokenizer.json": b"{}\n", SHARD: WEIGHTS,
         "original/consolidated.pth": b"".join(models.noise(22, MB))}
DIGEST = hashlib.sha256(WEIGHTS).hexdigest()

pytestmark = pytest.mark.short


@pytest.fixture
def pair():
    """A Hub, and another with the same repository."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Hub(Repository(NAME, FILES), cdn_address=f"127.0.0.{2 + at}"))
               for at in range(2)]


@pytest.fixture
def node(weightfs, pair):
    """A mount with a model whose sources are the two, in order."""
    def make(*options, add=()):
        mounted = weightfs({}, options=list(options), env={"HF_ENDPOINT": pair[0].endpoint})
        mounted.cli("add", NAME, "--source", SOURCE, "--source", f"{SOURCE}?endpoint={pair[1].endpoint}", *add)
        return mounted
    return make


def read(mounted, at_half=lambda: None):
    digest, done = hashlib.sha256(), 0
    with open(mounted.mount / NAME / SHARD, "rb", buffering=0) as file:
        while data := file.read(MB):
            digest.update(data)
            if done < len(WEIGHTS) // 4 <= done + len(data):
                at_half()
            done += len(data)
    return digest.hexdigest()


def sent(pair):
    """How often each byte of the shard was sent by the two together, at most."""
    counts = [hub.coverage(SHARD, len(WEIGHTS)) for hub in pair]
    return sum(most for _, most in counts)


def test_the_first_is_read_as_long_as_it_works(node, pair):
    mounted = node()
    assert read(mounted) == DIGEST
    assert not pair[1].asked()
    assert pair[0].coverage(SHARD, len(WEIGHTS)) == (1, 1)


@pytest.mark.parametrize("how", ["refuses", "dies", "stalls", "forbids"])
def test_the_reader_does_not_notice_that_the_first_fails_in_the_middle(node, pair, how):
    faults = {"refuses": hostile.refuse, "dies": hostile.reset(300_000), "stalls": hostile.stall(300_000),
              "forbids": hostile.status(403)}
    mounted = node("--stall-timeout", "2s", "--connections-per-blob", "4")
    pair[0].faults["cdn"] = [hostile.slow(8 * MB)]

    def fail():
        pair[0].faults["cdn"] = pair[0].faults["resolve"] = [faults[how]]
    assert read(mounted, fail) == DIGEST
    assert pair[1].bodies(SHARD)
    assert sent(pair) <= 2


def test_what_the_first_cannot_list_the_next_does(weightfs, pair):
    mounted = weightfs({}, env={"HF_ENDPOINT": "http://127.0.0.1:9"})  # nobody listens there
    mounted.cli("add", NAME, "--source", SOURCE, "--source", f"{SOURCE}?endpoint={pair[1].endpoint}")
    assert read(mounted) == DIGEST
    assert not pair[0].asked("cdn")


def test_bytes_of_the_first_that_are_wrong_are_not_kept_and_then_come_from_the_next(node, pair):
    pair[0].faults["cdn"] = [hostile.flip(20 * MB)]
    mounted = node("--verify", "strict")
    assert read(mounted) == DIGEST
    assert pair[0].bodies(SHARD) and pair[1].bodies(SHARD)
    assert sent(pair) <= 2
    assert DIGEST in mounted.blobs()


def test_another_source_counts_only_for_what_it_proves_to_have(pair, node):
    other = dict(FILES)
    other[SHARD] = WEIGHTS[:-1] + bytes([WEIGHTS[-1] ^ 1])
    pair[1].add(Repository(NAME, other))
    mounted = node("--deadline", "3s")
    pair[0].faults["cdn"] = pair[0].faults["resolve"] = [hostile.status(503)]
    with pytest.raises(OSError):
        read(mounted)
    assert not pair[1].asked("cdn", SHARD)


def test_the_same_bytes_are_one_blob_whatever_source_they_came_by(node, pair, folder):
    mounted = node()
    assert read(mounted) == DIGEST
    copy = folder / "copy"
    copy.mkdir()
    for path in ("config.json", SHARD):
        (copy / path).write_bytes(FILES[path])
    (copy / "weightfs.json").write_text(json.dumps(
        {"files": [{"path": path, "size": len(FILES[path]), "sha256": hashlib.sha256(FILES[path]).hexdigest()}
                   for path in ("config.json", SHARD)]}))
    mounted.cli("add", "x/file", f"file://{copy}")
    assert (mounted.mount / "x/file" / SHARD).read_bytes() == WEIGHTS
    assert pair[0].coverage(SHARD, len(WEIGHTS)) == (1, 1)


def test_patterns_choose_files_and_are_part_of_what_the_snapshot_is(node, pair):
    mounted = node(add=["--allow", "*.json", "--allow", "*.safetensors", "--allow", "original/",
                        "--ignore", "*.pth"])
    assert {path.name for path in (mounted.mount / NAME).iterdir()} == {"config.json", "tokenizer.json", SHARD}
    shown = mounted.model(NAME)
    assert shown["revision"] == pair[0].repositories[NAME].head.id
    mounted.cli("add", "x/all", SOURCE)
    assert mounted.model("x/all")["snapshot"] != shown["snapshot"]
    known = shown["known_revisions"][0]
    mounted.cli("add", "x/again", known["reference"], "--expect", known["snapshot"])
    assert mounted.model("x/again")["snapshot"] == shown["snapshot"]
    refused = mounted.cli("add", "x/none", SOURCE, "--allow", "*.gguf", check=False)
    assert refused.returncode == 3 and "wanted by the patterns" in refused.stderr
    pair[0].repositories[NAME].commit(FILES | {"config.json": b"{}"})
    assert mounted.json("update", NAME)["changed"]
    assert (mounted.mount / NAME / "config.json").read_bytes() == b"{}"
