# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""/models/.hub: the hub's own libraries take it for their cache, and find in it what they would have made."""

import ctypes
import json
import mmap
import os
import pathlib
import re
import subprocess
import threading

import pytest

import hub_matrix
import mounts
from hub import Hub
from hub_clients import RELEASES, HubClient
from repositories import Repository
from test_hub_clients import DIGESTS, FILES, NAME, digests
from test_hub_models import files
from waiting import until

FOLDER = "models--org--model"
OFFLINE = hub_matrix.OFFLINE
# A namespace of its own has no network, and its loopback is down.
NO_NETWORK = ("unshare", "--net")


@pytest.fixture
def model():
    return Repository(NAME, FILES)


@pytest.fixture
def hub(model):
    with Hub(model, Repository("org/data", FILES, "dataset")) as server:
        yield server


@pytest.fixture
def at(weightfs, hub):
    """at({name: source}, ...): an instance that knows this hub."""
    def make(sources=None, **options):
        mounted = weightfs(env={"HF_ENDPOINT": hub.endpoint}, **options)
        for name, source in (sources or {"my/model": f"hf://{NAME}"}).items():
            mounted.cli("add", name, source)
        return mounted
    return make


@pytest.fixture(params=RELEASES)
def release(request):
    return request.param


def layout(cache):
    """{path: "directory", a link's target, or the file's bytes}."""
    found = {}
    for root, folders, names in os.walk(cache):
        for name in (*folders, *names):
            path = pathlib.Path(root, name)
            found[str(path.relative_to(cache))] = os.readlink(path) if path.is_symlink() else \
                "directory" if path.is_dir() else path.read_bytes()
    return found


def test_it_is_what_the_client_itself_makes(at, hub, tmp_path):
    """But for what is known to be absent, and locks."""
    client = HubClient("newest", tmp_path, hub.endpoint)
    for kind, name in (("model", NAME), ("dataset", "org/data")):
        client.call("snapshot", {"repo_id": name, "repo_type": kind})
    expected = {path: what for path, what in layout(client.cache).items() if not path.endswith(".lock")}
    mounted = at({"my/model": f"hf://{NAME}", "data": "hf://datasets/org/data"})
    assert ".hub" not in os.listdir(mounted.mount)
    found = {path: what for path, what in layout(mounted.mount / ".hub").items() if ".no_exist" not in path}
    assert found.pop("version.txt") == b"1"
    signature = "Signature: 8a477f597d28d172789f06886806bc55\n".encode()
    for tags in (found, expected):
        assert tags.pop("CACHEDIR.TAG").startswith(signature)
    assert sorted(found) == sorted(expected)
    for path, what in expected.items():
        if re.search(r"/trees/.*json$", path):
            assert json.loads(found[path]) == json.loads(what)
        else:
            assert found[path] == what, path


def test_each_row_of_the_matrix(at, hub, model, release, tmp_path):
    mounted = at()
    client = HubClient(release, tmp_path / "home", hub.endpoint, mounted.mount / ".hub")
    found = hub_matrix.check(client, hub_matrix.rows(NAME, model.head.id, "config.json"))
    assert found["snapshot of main"]["value"]["files"] == DIGESTS
    scan = client.call("scan")
    assert [text.rsplit("/", 1)[-1] for text in scan["warnings"]] == \
        (["CACHEDIR.TAG"] if release == "0.36" else []) + ["version.txt"]
    [(name, repository)] = scan["repositories"].items()
    assert (name, repository["files"]) == (f"model/{NAME}", len(FILES))
    assert repository["revisions"] == {model.head.id: ["main"]}
    # What it is about the Hub that a cached commit is not asked for.
    hub.clear()
    arguments = {"repo_id": NAME, "revision": model.head.id}
    assert client.call("snapshot", arguments)["files"] == DIGESTS
    assert client.call("cached", arguments | {"filename": "adapter_config.json"}) == "no"
    assert not [request for request in hub.requests if request.headers.get("User-Agent", "").startswith("hf_hub")]


def test_each_row_of_the_matrix_when_the_hub_has_moved_on(at, hub, model, release, tmp_path):
    mounted, first = at(), model.head.id
    changed = FILES | {"config.json": b"changed"}
    second = model.commit(changed)
    client = HubClient(release, tmp_path / "home", hub.endpoint, mounted.mount / ".hub")
    hub_matrix.check(client, hub_matrix.rows(NAME, first, "config.json", "stale"))
    mounted.cli("update", "my/model")
    found = client.call("snapshot", {"repo_id": NAME})
    assert found["folder"].endswith(second) and found["files"] == digests(changed)
    # Both are there, and main is what the name shows, whatever the hub has.
    mounted.cli("rollback", "my/model")
    assert client.call("snapshot", {"repo_id": NAME}, **OFFLINE)["folder"].endswith(first)
    assert client.call("snapshot", {"repo_id": NAME, "revision": second}, **OFFLINE)["files"] == digests(changed)


def test_pull_requests_and_commits_by_name(at, hub, model, tmp_path):
    first, other = model.head.id, FILES | {"config.json": b'{"pull": 1}\n'}
    pull = model.commit(other, "refs/pr/1")
    mounted = at({"a": f"hf://{NAME}@{first}", "b": f"hf://{NAME}@refs/pr/1"})
    refs = mounted.mount / ".hub" / FOLDER / "refs"
    assert (refs / "refs/pr/1").read_text() == pull
    client = HubClient("newest", tmp_path, cache=mounted.mount / ".hub")
    calls = [("snapshot", {"repo_id": NAME, "revision": revision}) for revision in ("refs/pr/1", first)]
    assert [outcome["value"]["files"] for outcome in client.calls(*calls, **OFFLINE)] == [digests(other), DIGESTS]
    mounted.cli("rm", "b")
    assert (refs / "main").read_text() == first and os.listdir(refs) == ["main"]


def test_another_commit_of_the_same_files(at, hub, model, tmp_path):
    mounted = at()
    second = model.commit(FILES)
    client = HubClient("newest", tmp_path, hub.endpoint, mounted.mount / ".hub")
    assert client.error("snapshot", {"repo_id": NAME})["errno"] == 30
    assert not mounted.json("update", "my/model")["changed"]
    assert client.call("snapshot", {"repo_id": NAME})["folder"].endswith(second)
    assert mounted.model("my/model")["revision"] == second


# ---- the same bytes

def resident_pages(path):
    """How many pages of a file are in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
        pages = -(-len(mapped) // mmap.PAGESIZE)
        seen = (ctypes.c_ubyte * pages)()
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        address = libc.mmap(None, len(mapped), mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        try:
            assert libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(mapped)), seen) == 0
        finally:
            libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(len(mapped)))
        return sum(page & 1 for page in seen), pages


def test_a_file_and_its_blob_share_their_pages(at, hub, model, mode):
    mounted = at(passthrough=mode == "passthrough")
    mounted.wait("my/model")
    named = mounted.mount / "my/model/model.safetensors"
    linked = mounted.mount / ".hub" / FOLDER / "snapshots" / model.head.id / "model.safetensors"
    blob = linked.resolve()
    assert blob.name == model.head.files["model.safetensors"].etag
    assert named.stat().st_ino == linked.stat().st_ino == blob.stat().st_ino
    mounts.drop_caches()
    content = named.read_bytes()
    found, pages = resident_pages(linked)
    assert found == pages
    before = mounted.reads()
    assert linked.read_bytes() == content
    assert mounted.reads() == before
    if mode == "passthrough":
        assert before == 0


def test_what_is_read_by_the_blob_is_fetched_once(at, hub):
    mounted = at()
    [linked] = (mounted.mount / ".hub" / FOLDER / "snapshots").glob("*/model.safetensors")
    assert linked.read_bytes() == FILES["model.safetensors"]
    assert (mounted.mount / "my/model/model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert hub.coverage("model.safetensors", len(FILES["model.safetensors"])) == (1, 1)


# ---- whatever happens to it

@pytest.mark.parametrize("how", ["off", "shadow", "served"])
def test_it_is_there_in_every_mode(at, hub, model, tmp_path, how):
    mounted = at(passthrough=how != "served", options=[] if how == "served" else ["--mode", how])
    client = HubClient("newest", tmp_path, cache=mounted.mount / ".hub")
    assert client.call("snapshot", {"repo_id": NAME, "revision": model.head.id}, **OFFLINE)["files"] == DIGESTS


def test_a_daemon_that_takes_over_knows_all_of_it(at, model):
    mounted = at()
    mounted.wait("my/model")
    before = layout(mounted.mount / ".hub")
    folder = mounted.mount / ".hub" / FOLDER
    with open(folder / "refs/main") as main, open(folder / "trees" / f"{model.head.id}.json") as tree:
        opened = mounted.status()["fuse"]["open_files"]
        pid = mounted.kill_daemon()
        mounted.wait_new_daemon(pid)
        assert main.read() == model.head.id
        assert json.load(tree)["format_version"] == 1
        assert mounted.status()["fuse"]["open_files"] == opened
    until(lambda: mounted.status()["fuse"]["open_files"] == 0, 10, "everything is closed")
    mounts.drop_caches()
    assert layout(mounted.mount / ".hub") == before


def test_walks_over_all_of_it_have_no_errors_while_names_move(at, hub, model):
    mounted = at()
    mounted.wait("my/model")
    done = threading.Event()

    def move():
        for number in range(6):
            model.commit(FILES | {"config.json": b"%d" % number})
            mounted.cli("update", "my/model")
            mounted.cli("rollback", "my/model")
        done.set()

    mover = threading.Thread(target=move)
    mover.start()
    rounds = 0
    try:
        while not done.is_set() or rounds == 0:
            for command in (["find", "-L", ".hub"], ["ls", "-lR", ".hub"], ["tar", "-cf", "/dev/null", ".hub"],
                            ["getfattr", "-dR", ".hub"], ["du", "-s", ".hub"]):
                walked = subprocess.run(command, cwd=mounted.mount, capture_output=True, text=True, timeout=60)
                assert walked.returncode == 0, (command, walked.stderr)
            rounds += 1
    finally:
        mover.join()
    assert done.is_set()


def test_nothing_can_be_written(at):
    folder = at().mount / ".hub"
    for call in (lambda: os.mkdir(folder / ".locks/models--org--other"), lambda: os.unlink(folder / "version.txt"),
                 lambda: open(folder / FOLDER / "refs/main", "w"), lambda: open(folder / "new", "x")):
        with pytest.raises(OSError, match="Read-only file system"):
            call()
    os.makedirs(folder / ".locks" / FOLDER, exist_ok=True)


def test_why_tells_what_each_path_is(at, model):
    mounted = at()
    mounted.wait("my/model")
    folder = mounted.mount / ".hub" / FOLDER

    def why(path):
        return json.loads(mounted.cli("why", str(path), "--json", check=False).stdout)
    linked = why(folder / "snapshots" / model.head.id / "config.json")
    assert (linked["name"], linked["file"], linked["state"]) == ("my/model", "config.json", "complete")
    assert why(folder / "refs/main")["state"] == "generated"
    assert "Hub" in why(folder / "blobs")["sentence"]
    absent = why(mounted.mount / ".hub/models--org--other/refs")
    assert absent["state"] == "absent" and "Hub" in absent["sentence"]


# ---- what it is for

@pytest.mark.seconds(500)
def test_from_pretrained_by_the_name_of_the_repository_with_no_network(weightfs, tmp_path):
    maker = HubClient("newest", tmp_path / "made")
    maker.models("make", str(tmp_path / "made"))
    made = {name: tmp_path / "made" / name for name in ("sharded", "custom")}
    names = [f"org/{name}" for name in made]
    expected = maker.models("load", *map(str, made.values()))
    with Hub(*(Repository(f"org/{name}", files(path)) for name, path in made.items())) as hub:
        mounted = weightfs(env={"HF_ENDPOINT": hub.endpoint})
        for name in names:
            mounted.cli("add", f"my/{name}", f"hf://{name}")
            mounted.wait(f"my/{name}")
        cache = mounted.mount / ".hub"
        cut = HubClient("newest", tmp_path / "cut", cache=cache, prefix=NO_NETWORK)
        client = HubClient("newest", tmp_path / "home", hub.endpoint, cache)
        hub.clear()
        loads = [cut.models("load", *names, **OFFLINE), client.models("load", *names)]
        assert not [request for request in hub.requests if request.kind in ("cdn", "cache")]
        # Of a commit it asks what it asks whatever is in its cache, and of no file that it can know to be absent.
        pinned = [f"{name}@{hub.repositories[name].head.id}" for name in names]
        ordinary = HubClient("newest", tmp_path / "ordinary", hub.endpoint)
        ordinary.models("load", *pinned)
        asked = []
        for reader in (ordinary, client):
            hub.clear()
            loads.append(reader.models("load", *pinned))
            asked.append({(request.kind, request.file) for request in hub.requests})
        assert asked[1] <= asked[0] and not {"cdn", "cache"} & {kind for kind, _ in asked[1]}
        assert mounted.reads() == 0
    for found in loads:
        for plain, model in zip(expected, found, strict=True):
            for key in set(plain) - {"seconds"}:
                assert model[key] == plain[key], key
