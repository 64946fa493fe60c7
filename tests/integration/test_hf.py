# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Models of the Hub through a mount: what is asked of it, who gets the token, and what may go wrong."""

import hashlib
import json

import pytest

import hostile
import hub_faults
import models
from consumer import load as tree
from hub import Hub
from repositories import Repository
from waiting import until

NAME, SOURCE = "org/m", "hf://org/m"
MB = 1 << 20
SHARD = "model-00001-of-00002.safetensors"


def noise(seed, length):
    return b"".join(models.noise(seed, length))


FILES = {"config.json": b'{"model_type": "x"}\n', "tokenizer.json": b"{}\n", "empty.txt": b"",
         SHARD: noise(11, 24 * MB), "model-00002-of-00002.safetensors": noise(12, 5 * MB + 3),
         "sub/a #1?%41 \u00fc.txt": b"Hello, World!"}
TOKENS = {"hf_reader": "reader", "hf_stranger": "stranger"}

pytestmark = pytest.mark.short


@pytest.fixture
def repository():
    return Repository(NAME, FILES)


@pytest.fixture
def hub(repository):
    with Hub(repository, Repository("org/gated", FILES, gated="auto", readers={"reader"}),
             Repository("org/private", FILES, private=True, readers={"reader"}), tokens=TOKENS, page=3) as server:
        yield server


@pytest.fixture
def node(weightfs, hub):
    """A mount whose Hub is this one."""
    def make(sources=None, token=None, endpoint=None, **options):
        env = {"HF_ENDPOINT": endpoint or hub.endpoint} | ({"HF_TOKEN": token} if token else {})
        return weightfs(sources, env=env | options.pop("env", {}), **options)
    return make


def sha256(content):
    return hashlib.sha256(content).hexdigest()


EXPECTED = {path: sha256(content) for path, content in FILES.items()}


def test_a_repository_is_a_model_with_its_commit_and_id_at_once(node, hub, repository):
    mounted = node(token="hf_reader")
    mounted.cli("add", NAME, SOURCE)
    shown = mounted.model(NAME)
    assert shown["revision"] == repository.head.id
    assert shown["snapshot"]
    assert len(hub.asked("info")) == 1 and len(hub.asked("tree")) == 3
    assert not hub.asked("cdn")
    assert tree(mounted.mount / NAME) == EXPECTED
    for path, content in FILES.items():
        assert not content or hub.coverage(path, len(content)) == (1, 1), path
    for shard in (SHARD, "model-00002-of-00002.safetensors"):
        assert len(hub.asked("resolve", shard)) == 1, "one signed URL for all ranges"
    assert {request.token for request in hub.asked("cdn")} == {None}
    assert {request.token for request in hub.asked() if request.kind != "cdn"} == {"hf_reader"}
    for place in (mounted.log_text(), json.dumps(mounted.status()), mounted.cli("events", "--json").stdout):
        assert "hf_reader" not in place


def test_what_is_complete_asks_nobody(node, hub):
    mounted = node({NAME: SOURCE})
    mounted.wait(NAME)
    mounted.stop()
    hub.clear()
    mounted.start()
    assert tree(mounted.mount / NAME) == EXPECTED
    assert mounted.cli("verify", NAME).returncode == 0
    assert not hub.asked()


def test_datasets_spaces_pull_requests_and_names_without_a_namespace(node, hub):
    mounted = node()
    for at, (name, kind, source) in enumerate((("org/data", "dataset", "hf://datasets/org/data"),
                                               ("org/app", "space", "hf://spaces/org/app"),
                                               ("gpt2", "model", "hf://gpt2"))):
        made = hub.add(Repository(name, {"a.txt": name.encode()}, kind=kind))
        made.commit({"a.txt": b"proposed"}, ref="refs/pr/1")
        mounted.cli("add", f"x/m{at}", source)
        assert (mounted.mount / f"x/m{at}/a.txt").read_bytes() == name.encode()
        mounted.cli("add", f"y/m{at}", f"{source}@refs/pr/1")
        assert (mounted.mount / f"y/m{at}/a.txt").read_bytes() == b"proposed"


@pytest.mark.parametrize("how", ["dead URL", "expired URL", "connection", "storage error"])
def test_the_reader_does_not_notice_what_breaks_in_the_middle(node, hub, how):
    mounted = node({NAME: SOURCE})
    broken = {"dead URL": lambda: hub.forget_signatures(),
              "expired URL": lambda: hub.advance(7200),
              "connection": lambda: hub.faults.update({("cdn", SHARD): [hostile.first(3, hostile.reset(MB))]}),
              "storage error": lambda: hub.faults.update({("cdn", SHARD): [hostile.first(3, hostile.status(503))]})}
    with open(mounted.mount / NAME / SHARD, "rb", buffering=0) as file:
        digest = hashlib.sha256(file.read(4096))
        broken[how]()
        while data := file.read(MB):
            digest.update(data)
    assert digest.hexdigest() == EXPECTED[SHARD]
    fewest, most = hub.coverage(SHARD, len(FILES[SHARD]))
    assert fewest >= 1 and most <= 2


def test_a_hub_whose_clock_is_off_signs_urls_that_live_as_long_as_it_means(node, hub):
    hub.expires, hub.clock = 120, -3600
    mounted = node({NAME: SOURCE})
    assert tree(mounted.mount / NAME) == EXPECTED
    assert len(hub.asked("resolve", SHARD)) == 1


def test_a_branch_that_moves_is_an_update_and_what_it_showed_before_stays(node, hub, repository):
    mounted = node({NAME: SOURCE})
    old = repository.head.id
    changed = FILES | {"config.json": b"{}", SHARD: noise(13, MB)}
    new = repository.commit(changed)
    answer = mounted.json("update", NAME)
    assert (answer["from"], answer["to"], answer["changed"]) == (old, new, True)
    assert tree(mounted.mount / NAME) == {path: sha256(content) for path, content in changed.items()}
    # Not fetched before, by a daemon that did not see it listed.
    mounted.wait_new_daemon(mounted.kill_daemon())
    assert tree(mounted.mount / f"{NAME}@{old[:12]}") == EXPECTED
    shown = {one["revision"]: one for one in mounted.model(NAME)["known_revisions"]}
    assert shown[old]["reference"] == f"{SOURCE}@{old}"
    other = node()
    other.cli("add", "r/m", shown[old]["reference"], "--expect", shown[old]["snapshot"])
    assert tree(other.mount / "r/m") == EXPECTED
    refused = other.cli("add", "r/x", f"{SOURCE}@{new}", "--expect", shown[old]["snapshot"], check=False)
    assert refused.returncode == 1 and "r/x" not in json.dumps(other.json("ls"))


@pytest.mark.parametrize("source, token, says", [
    ("hf://org/gated", None, "is gated"), ("hf://org/gated", "hf_stranger", "is gated"),
    ("hf://org/private", None, "does not exist, or it is private"),
    ("hf://org/private", "hf_stranger", "gives no access"), ("hf://org/none", None, "does not exist"),
    (f"{SOURCE}@nowhere", None, "has no revision nowhere"), (SOURCE, "hf_dead", "refuses the token of HF_TOKEN")])
def test_each_refusal_says_what_it_is(node, hub, source, token, says):
    mounted = node(token=token)
    refused = mounted.cli("add", NAME, source, check=False)
    assert refused.returncode != 0
    assert says in refused.stderr
    assert token is None or token not in refused.stderr + mounted.log_text()


def test_a_token_file_counts_and_is_read_again(node, hub, folder):
    token = folder / "token"
    token.write_text("hf_stranger\n")
    token.chmod(0o644)
    mounted = node(env={"HF_TOKEN_PATH": str(token)})
    assert "is gated" in mounted.cli("add", "g/m", "hf://org/gated", check=False).stderr
    token.write_text("hf_reader\n")
    mounted.cli("add", "g/m", "hf://org/gated")
    assert tree(mounted.mount / "g/m") == EXPECTED


def test_many_names_of_one_repository_ask_once_and_share_their_bytes(node, hub):
    sources = {f"n{at}/m": (SOURCE, f"{SOURCE}@main", "hf://models/org/m")[at % 3] for at in range(6)}
    mounted = node(sources)
    for name in sources:
        assert tree(mounted.mount / name) == EXPECTED
    assert len(hub.asked("tree")) <= 4
    assert hub.coverage(SHARD, len(FILES[SHARD])) == (1, 1)


def test_a_hub_that_counts_is_obeyed(node, hub):
    hub.limits["api"] = (2, 2)
    mounted = node()
    for at in range(3):
        name = hub.add(Repository(f"org/r{at}", {"a.txt": b"%d" % at})).name
        mounted.cli("add", f"l/m{at}", f"hf://{name}")
        assert (mounted.mount / f"l/m{at}/a.txt").read_bytes() == b"%d" % at
    refused = [request for request in hub.asked() if request.status == 429]
    assert len(refused) <= 3


@pytest.mark.parametrize("fault", [
    hub_faults.twice("config.json"), hub_faults.also("../../etc/passwd", "config.json"),
    hub_faults.also("/etc/passwd", "config.json"), hub_faults.sized("config.json", 5)])
def test_a_tree_that_cannot_be_is_refused(node, hub, fault):
    hub.faults["tree"] = [fault]
    mounted = node()
    refused = mounted.cli("add", NAME, SOURCE, check=False)
    assert refused.returncode == 1
    assert not mounted.json("ls")["models"]


def test_trees_without_an_end_end(node, hub):
    mounted = node()
    for fault in (hub_faults.endless(hub), hub_faults.circling(hub)):
        hub.faults["tree"] = [fault]
        assert mounted.cli("add", NAME, SOURCE, check=False, timeout=60).returncode == 1


@pytest.mark.parametrize("fault", [
    hub_faults.elsewhere(hub_faults.METADATA_SERVICE), hub_faults.with_scheme("file"),
    hub_faults.with_scheme("ftp"), hub_faults.header("X-Linked-Size", "17"),
    hub_faults.header("X-Linked-Etag", '"' + "0" * 64 + '"')])
def test_a_file_that_the_hub_sends_elsewhere_or_describes_otherwise_is_not_read(node, hub, fault):
    mounted = node({NAME: SOURCE}, options=["--deadline", "3s"])
    hub.faults[("resolve", SHARD)] = [fault]
    with pytest.raises(OSError):
        (mounted.mount / NAME / SHARD).read_bytes()
    assert (mounted.mount / NAME / "config.json").read_bytes() == FILES["config.json"]
    assert not hub.asked("cdn", SHARD)


@pytest.mark.parametrize("faults", [
    {"resolve": [hub_faults.without("X-Linked-Size", "X-Linked-Etag", "X-Repo-Commit")]},
    {"resolve": [hub_faults.without("Content-Length")], "cache": [hub_faults.without("Content-Length")]},
    {"tree": [hub_faults.listing(hub_faults.pointer_sized)]},
    {"resolve": [hub_faults.detour]}])
def test_mirrors_that_leave_out_or_say_less_still_work(node, hub, faults):
    hub.faults.update(faults)
    mounted = node({NAME: SOURCE})
    assert tree(mounted.mount / NAME) == EXPECTED


def test_links_of_a_mirror_that_name_the_original_are_asked_of_the_mirror(node, hub):
    hub.links_to = "https://hub.invalid"
    mounted = node({NAME: SOURCE})
    assert tree(mounted.mount / NAME) == EXPECTED


def test_a_wrong_byte_is_never_kept_and_the_next_open_gets_the_right_ones(node, hub):
    hub.faults[("cdn", SHARD)] = [hostile.first(4, hostile.flip(9 * MB))]
    mounted = node({NAME: SOURCE}, options=["--verify", "strict", "--deadline", "5s"])

    def right():
        try:
            return sha256((mounted.mount / NAME / SHARD).read_bytes()) == EXPECTED[SHARD]
        except OSError:
            return False
    until(right, 30, "the right bytes are read")
    assert mounted.blobs() <= set(EXPECTED.values())
