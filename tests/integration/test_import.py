# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""What lies on the node already is taken into the store, and its source not asked for it."""

import hashlib
import json
import os
import pathlib
import stat
import threading
import time

import pytest

import models
import mounts
from consumer import load as tree
from hub import Hub
from repositories import Repository
from test_local_source import shared_extents, used
from waiting import until

NAME, SOURCE = "org/m", "hf://org/m"
MB = 1 << 20
SHARD, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def noise(seed, length):
    return b"".join(models.noise(seed, length))


FILES = {"config.json": b'{"model_type": "x"}\n', "tokenizer.json": b"{}\n", SHARD: noise(11, 24 * MB),
         SECOND: noise(12, 5 * MB + 3), "sub/odd \u00fc.bin": noise(13, 70_001)}
SLOW = ["--write-bandwidth", "6MB"]  # bytes per second: 24 MB are under way long enough to be met there


def sha256(content):
    return hashlib.sha256(content).hexdigest()


EXPECTED = {path: sha256(content) for path, content in FILES.items()}


def write(path, content):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def hub_cache(folder, repository):
    """As the Hub's own client leaves it: content by its etag, and links to that by name."""
    home = folder / "hub" / ("models--" + repository.name.replace("/", "--"))
    write(home / "refs/main", repository.head.id.encode())
    snapshot = home / "snapshots" / repository.head.id
    for path, entry in repository.head.files.items():
        write(home / "blobs" / entry.etag, entry.read())
        link = snapshot / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(home / "blobs" / entry.etag, link.parent))
    return folder / "hub", snapshot


@pytest.fixture
def repository():
    return Repository(NAME, FILES)


@pytest.fixture
def hub(repository):
    with Hub(repository) as server:
        yield server


@pytest.fixture
def node(weightfs, hub):
    """A mount to which the model is added; what the Hub is asked from then on is known."""
    def make(*options, **more):
        mounted = weightfs(env={"HF_ENDPOINT": hub.endpoint}, options=options, **more)
        mounted.cli("add", NAME, SOURCE)
        hub.clear()
        return mounted
    return make


def imported(mounted, *arguments, code=0):
    done = mounted.cli("import", *arguments, "--json", check=False, timeout=400)
    assert done.returncode == code, done.stderr + done.stdout
    return json.loads(done.stdout)


def begin(mounted, *arguments):
    """An import in a thread of its own; join() it, then look at `result`."""
    class Import(threading.Thread):
        result = None

        def run(self):
            done = mounted.cli("import", *arguments, "--json", check=False)
            self.result = (done.returncode, done.stdout, done.stderr)
    thread = Import()
    thread.start()
    return thread


def filling(mounted, least=1):
    """Waits until the first shard is being filled, and some of it is there."""
    def found():
        return [fill for fill in mounted.status()["fills"]
                if fill["path"].endswith(SHARD) and least <= fill["written"] < fill["size"]]
    until(found, 30, "the shard is under way", interval=0.05)


def check_complete(mounted, hub):
    """All of it is right, and nobody was asked for it."""
    assert tree(mounted.mount / NAME) == EXPECTED
    assert mounted.model(NAME)["complete"]
    mounted.cli("verify", NAME)
    assert not hub.asked()


# ---- layouts

@pytest.mark.short
def test_the_cache_of_the_hubs_own_client(node, hub, repository, folder):
    cache, _ = hub_cache(folder, repository)
    mounted = node()
    would = imported(mounted, cache, "--dry-run")
    assert would["dry_run"] and would["taken"]["files"] == len(FILES)
    assert {file["file"] for file in would["files"]} == {f"{NAME}/{path}" for path in FILES}
    assert not mounted.model(NAME)["complete"]
    result = imported(mounted, cache)
    assert result["taken"] == {"files": len(FILES), "bytes": sum(map(len, FILES.values()))}
    assert result["unknown"]["files"] == 1  # refs/main
    assert result["passed_over"] == result["failed"]["files"] == 0
    check_complete(mounted, hub)
    again = imported(mounted, cache)
    assert again["taken"]["files"] == 0 and again["present"]["files"] == len(FILES)
    events = mounted.cli("events", "--json").stdout
    assert events.count('"complete"') >= len(FILES)
    assert tree(cache / "models--org--m/snapshots" / repository.head.id) == EXPECTED, "the cache stays as it is"


def test_a_snapshot_of_that_cache_whose_links_lead_beside_it(node, hub, repository, folder):
    _, snapshot = hub_cache(folder, repository)
    mounted = node()
    result = imported(mounted, snapshot, NAME)
    assert result["taken"]["files"] == len(FILES) and result["passed_over"] == 0
    check_complete(mounted, hub)


def test_a_copied_tree_whatever_its_names_are(node, hub, folder):
    for at, content in enumerate(FILES.values()):
        write(folder / "copied/deep/er" / f".{at}.part", content)
    write(folder / "copied/of another size", b"x")
    write(folder / "copied/of the same size", bytes(len(FILES[SECOND])))
    write(folder / "copied/the same again", FILES[SHARD])
    mounted = node()
    result = imported(mounted, folder / "copied")
    assert result["taken"]["files"] == len(FILES)
    assert result["unknown"]["files"] == 2
    check_complete(mounted, hub)


def test_an_ollama_store(node, hub, folder):
    for content in FILES.values():
        write(folder / "ollama/blobs" / f"sha256-{sha256(content)}", content)
    write(folder / "ollama/blobs" / f"sha256-{sha256(b'another')}", b"another")
    write(folder / "ollama/manifests/registry/library/m/latest", b"{}")
    mounted = node()
    result = imported(mounted, folder / "ollama")
    assert result["taken"]["files"] == len(FILES) and result["unknown"]["files"] == 2
    check_complete(mounted, hub)


def test_what_is_named_is_taken_and_no_other_model(node, hub, folder):
    write(folder / "d/x", FILES[SHARD])
    mounted = node()
    hub.add(Repository("org/other", {"config.json": b"{}", "other.safetensors": noise(20, MB)}))
    mounted.cli("add", "org/other", "hf://org/other")
    assert imported(mounted, folder / "d", "org/other")["taken"]["files"] == 0
    assert imported(mounted, folder / "d", "org/other", NAME)["taken"]["files"] == 1
    refused = mounted.cli("import", folder / "d", "org/none", check=False)
    assert refused.returncode == 3 and "org/none" in refused.stderr


# ---- what must not come in, or lead out

def test_wrong_bytes_under_a_right_name_are_not_taken(node, hub, folder):
    wrong = write(folder / "d/blobs" / f"sha256-{sha256(FILES[SHARD])}", FILES[SHARD][:-1] + b"!")
    mounted = node()
    result = imported(mounted, folder / "d", code=1)
    assert result["mismatched"]["files"] == 1 and result["taken"]["files"] == 0
    assert result["faults"][0]["path"] == str(wrong) and result["faults"][0]["code"] == "corrupt"
    assert mounted.status()["store"]["quarantined"] == 0
    assert tree(mounted.mount / NAME) == EXPECTED
    assert hub.asked("cdn", SHARD)


def test_links_do_not_lead_out_of_the_directory(node, hub, folder):
    outside = write(folder / "outside/shard", FILES[SHARD])
    write(folder / "d/inside", FILES[SECOND])
    (folder / "d/absolute").symlink_to(outside)
    (folder / "d/relative").symlink_to("../outside/shard")
    (folder / "d/directory").symlink_to("../outside")
    (folder / "d/round").symlink_to(".")
    (folder / "d/nowhere").symlink_to("gone")
    (folder / "d/inner").symlink_to("inside")
    os.mkfifo(folder / "d/fifo")
    mounted = node()
    result = imported(mounted, folder / "d")
    assert result["taken"]["files"] == 1 and result["passed_over"] == 5
    assert mounted.status()["store"]["blobs"] == 1


def test_what_the_daemon_may_not_read_is_named(node, hub, folder):
    closed = write(folder / "d/closed", FILES[SHARD])
    write(folder / "d/cellar/x", FILES[SECOND])
    closed.chmod(0)
    (folder / "d/cellar").chmod(0o700)
    write(folder / "d/open", FILES["sub/odd \u00fc.bin"])
    mounted = node()
    if os.stat(mounted.store / "VERSION").st_uid == 0:
        pytest.skip("this daemon may read everything")
    result = imported(mounted, folder / "d", code=1)
    assert result["taken"]["files"] == 1
    assert {(fault["path"], fault["code"]) for fault in result["faults"]} == {
        (str(closed), "permission"), (str(folder / "d/cellar"), "permission")}
    text = mounted.cli("import", folder / "d", check=False)
    assert str(closed) in text.stderr and "ermission" in text.stderr
    (folder / "d").chmod(0o700)
    refused = mounted.cli("import", folder / "d", check=False)
    assert refused.returncode == 1 and str(folder / "d") in refused.stderr
    (folder / "d").chmod(0o755)


def test_the_mount_itself_and_what_is_no_directory_are_refused(node, hub, folder):
    mounted = node()
    for place, words in ((mounted.mount, "mount"), (mounted.mount / NAME, "mount"), (folder / "none", "No such"),
                         (write(folder / "file", b""), "not a directory"), (mounted.store, "store")):
        refused = mounted.cli("import", place, check=False)
        assert refused.returncode != 0 and words in refused.stderr, refused.stderr
    # Above them, they are passed over.
    result = imported(mounted, mounted.home)
    assert result["taken"]["files"] == 0
    write(folder / "weightfs-0/shard", FILES[SHARD])
    assert imported(mounted, folder / "weightfs-0", code=0)["taken"]["files"] == 1


def test_nothing_is_imported_where_nothing_is_kept(node, hub, folder):
    write(folder / "d/x", FILES[SHARD])
    mounted = node()
    mounted.cli("mode", "off")
    refused = mounted.cli("import", folder / "d", check=False)
    assert refused.returncode == 1 and "mode off" in refused.stderr


# ---- meanwhile

def test_a_file_that_is_written_to_meanwhile_is_not_kept(node, hub, folder):
    growing = write(folder / "d/x", FILES[SHARD])
    mounted = node(*SLOW)
    running = begin(mounted, folder / "d")
    filling(mounted)
    with open(growing, "ab") as file:
        file.write(b"more")
    running.join(60)
    code, out, _ = running.result
    result = json.loads(out)
    assert code == 1 and result["failed"]["files"] == 1 and result["taken"]["files"] == 0
    assert result["faults"][0]["code"] == "changed"
    assert sha256(FILES[SHARD]) not in mounted.blobs()
    assert not hub.asked()


def test_who_reads_meanwhile_has_every_byte_though_the_file_is_written_to(node, hub, folder):
    changing = write(folder / "d/x", FILES[SHARD])
    mounted = node(*SLOW)
    running = begin(mounted, folder / "d")
    filling(mounted)
    with open(mounted.mount / NAME / SHARD, "rb") as file:
        head = file.read(MB)
        with open(changing, "r+b") as other:
            other.write(b"another")
        assert head + file.read() == FILES[SHARD]
    running.join(60)
    assert tree(mounted.mount / NAME) == EXPECTED
    mounted.cli("verify", NAME)


def test_what_somebody_is_fetching_is_left_to_him(node, hub, folder):
    write(folder / "d/x", FILES[SHARD])
    mounted = node(*SLOW)
    with open(mounted.mount / NAME / SHARD, "rb") as file:
        assert file.read(100) == FILES[SHARD][:100]
        filling(mounted)
        result = imported(mounted, folder / "d")
        assert result["fetching"]["files"] == 1 and result["taken"]["files"] == 0
        assert file.read() == FILES[SHARD][100:]


def test_what_was_begun_over_the_network_is_finished_from_here(node, hub, folder):
    write(folder / "d/x", FILES[SHARD])
    mounted = node()
    with open(mounted.mount / NAME / SHARD, "rb") as file:
        file.read(100)
    until(lambda: not mounted.status()["fills"], 30, "nobody reads any more")
    hub.clear()
    result = imported(mounted, folder / "d")
    assert result["taken"]["files"] == 1
    assert not hub.asked()
    assert (mounted.mount / NAME / SHARD).read_bytes() == FILES[SHARD]


def test_a_daemon_that_is_killed_in_the_middle_and_once_more(node, hub, folder):
    for at, content in enumerate(FILES.values()):
        write(folder / "d" / str(at), content)
    mounted = node(*SLOW)
    running = begin(mounted, folder / "d")
    filling(mounted, least=4 * MB)
    mounted.wait_new_daemon(mounted.kill_daemon())
    running.join(60)  # the command asks the next daemon, which knows of no such job
    hub.clear()
    result = imported(mounted, folder / "d")
    assert result["taken"]["files"] + result["present"]["files"] == len(FILES)
    check_complete(mounted, hub)


# ---- amounts

@pytest.mark.seconds(600)
def test_ten_thousand_small_files(node, hub, folder):
    files = {f"f{at:05}.bin": at.to_bytes(4, "big") * 50 for at in range(10_000)}
    hub.add(Repository("org/many", files))
    for path, content in files.items():
        write(folder / "d" / path[:2] / path, content)
    mounted = node()
    mounted.cli("add", "org/many", "hf://org/many")
    hub.clear()
    start = time.monotonic()
    result = imported(mounted, folder / "d")
    took = time.monotonic() - start
    assert result["taken"]["files"] == len(files)
    print(f"10,000 files in {took:.1f} s")
    assert took < 300, f"{took:.0f} s"
    assert mounted.model("org/many")["complete"] and not hub.asked()
    assert len(result["files"]) == 1000, "a list of them all would be long"


def test_what_does_not_fit_is_refused_and_nothing_is_fetched(node, hub, folder):
    write(folder / "d/x", FILES[SHARD])
    with mounts.tmpfs(folder / "disk", size="20m") as disk:
        mounted = node(store=disk / "store")
        result = imported(mounted, folder / "d", code=1)
        assert result["taken"]["files"] == 0
        assert result["faults"][0]["code"] == "no_space"
        assert not hub.asked()
        mounted.stop()


# ---- without a copy

@pytest.mark.short
def test_by_reflink_it_takes_no_space_and_is_a_file_of_its_own(node, hub, folder):
    if not mounts.kernel_has("xfs"):
        pytest.skip(f"kernel {os.uname().release} has no xfs")
    with mounts.xfs(folder, 400) as disk:
        for at, content in enumerate(FILES.values()):
            write(disk / "d" / str(at), content)
        mounted = node(store=disk / "store")
        before = used(disk)
        result = imported(mounted, disk / "d")
        assert result["reflinked"]["files"] == len(FILES) and result["copied"]["files"] == 0
        extents, shared = shared_extents(mounted.blob(sha256(FILES[SHARD])))
        assert extents == shared > 0
        assert used(disk) - before < 4 * MB
        with open(disk / "d/0", "r+b") as file:
            file.write(b"another")
        check_complete(mounted, hub)
        mounted.stop()


def own(path, mounted):
    about = os.stat(mounted.store / "VERSION")
    os.chown(path, about.st_uid, about.st_gid)


def test_hard_links_for_who_asks(node, hub, folder):
    mounted = node()
    paths = {}
    for at, (path, content) in enumerate(FILES.items()):
        paths[path] = write(folder / "d" / str(at), content)
        own(paths[path], mounted)
    result = imported(mounted, folder / "d", "--link")
    assert result["linked"]["files"] == result["taken"]["files"] == len(FILES), result["faults"]
    for path, linked in paths.items():
        blob = mounted.blob(sha256(FILES[path]))
        assert os.path.samefile(blob, linked) and stat.S_IMODE(linked.stat().st_mode) == 0o444
    check_complete(mounted, hub)
    mounted.stop()
    mounted.start()
    check_complete(mounted, hub)
    # Whoever writes to it has changed the blob: it is found out, and comes from the source again.
    with open(paths[SHARD], "r+b") as file:
        file.write(b"another")
    assert (mounted.mount / NAME / SHARD).read_bytes() == FILES[SHARD]
    assert hub.asked("cdn", SHARD)
    mounted.cli("rm", NAME)
    assert paths[SECOND].read_bytes() == FILES[SECOND], "it was somebody's before"


def test_files_that_cannot_be_linked_are_named(node, hub, folder):
    mounted = node()
    if os.stat(mounted.store / "VERSION").st_uid == 0:
        pytest.skip("all files are this daemon's")
    foreign = write(folder / "d/foreign", FILES[SHARD])
    written = write(folder / "d/written", FILES[SECOND])
    own(written, mounted)
    with open(written, "ab"):
        result = imported(mounted, folder / "d", "--link", code=1)
    assert {(fault["path"], fault["code"]) for fault in result["faults"]} == {
        (str(foreign), "permission"), (str(written), "busy")}
    with mounts.tmpfs(folder / "elsewhere") as elsewhere:
        own(write(elsewhere / "x", FILES[SECOND]), mounted)
        result = imported(mounted, elsewhere, "--link", code=1)
        assert result["faults"][0]["code"] == "unsupported"
    assert stat.S_IMODE(foreign.stat().st_mode) == 0o644
