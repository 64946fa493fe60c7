# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The hub of these tests answers as the public one does, and misbehaves as it is told to."""

import email.utils
import gzip
import hashlib
import http.client
import json
import shutil
import subprocess
import urllib.parse

import pytest

import hostile
import hub_faults
from hub import Hub
from repositories import Repository, git_id

BIG = bytes(range(256)) * 4000
FILES = {"config.json": b'{"a": 1}\n' * 100, "empty.txt": b"", "w.safetensors": BIG, "a/b/c.txt": b"Hello, World!",
         "hash#?%41 \u00fc.txt": b"odd"}
FILE = "/org/m/resolve/main/w.safetensors"
TEXT = "/org/m/resolve/main/config.json"
TREE = "/api/models/org/m/tree/main?recursive=true&expand=false"
TOKENS = {"hf_reader": "reader", "hf_stranger": "stranger"}


class Answer:
    """One request to a loopback URL, no redirect followed."""

    def __init__(self, url, method="GET", body=None, **headers):
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
        target = parts.path + ("?" + parts.query if parts.query else "")
        connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        self.status, self.headers = answer.status, answer.headers
        try:
            self.body, self.cut = answer.read(), False
        except (http.client.IncompleteRead, ConnectionError, TimeoutError) as error:
            self.body, self.cut = getattr(error, "partial", b""), True
        connection.close()

    def __getitem__(self, name):
        return self.headers[name]


@pytest.fixture
def model():
    return Repository("org/m", FILES)


@pytest.fixture
def hub(model):
    with Hub(model, Repository("org/gated", FILES, gated="auto", readers={"reader"}), tokens=TOKENS) as server:
        yield server


@pytest.fixture
def get(hub):
    """get(path or URL, ...) -> Answer."""
    return lambda target, *rest, **headers: Answer(
        target if target.startswith("http") else hub.endpoint + target, *rest, **headers)


def listed(answer):
    return [item["path"] for item in json.loads(answer.body)]


# ---- as it should be

def test_ids_are_those_of_git(model, tmp_path):
    if not shutil.which("git"):
        pytest.skip("no git to compare with")
    for path, entry in model.head.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(entry.pointer or entry.read())
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    tree = subprocess.run(["git", "write-tree"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert model.head.folders[""] == tree.stdout.strip()
    assert git_id("blob", b"Hello, World!") == "b45ef6fec89518d314f546fd6c3025367b721684"


def test_three_shapes(hub, get, model):
    entry, text = model.head.files["w.safetensors"], model.head.files["config.json"]
    for method in ("HEAD", "GET"):
        large = get(FILE, method)
        assert large.status == 302 and large["Location"].startswith(hub.cdn + "/")
        assert (large["X-Linked-Etag"], large["X-Linked-Size"]) == (f'"{entry.sha256}"', str(len(BIG)))
        assert large["X-Repo-Commit"] == model.head.id
        small = get(TEXT, method)
        assert small.status == 307 and small["Location"].startswith("/api/resolve-cache/models/org/m/")
        assert small["X-Repo-Commit"] == model.head.id and small["X-Linked-Etag"] == f'"{text.blob_id}"'
        assert small["X-Linked-Size"] is None and small["Content-Length"] != str(text.size)
    direct = get("/org/m/resolve/main/empty.txt", "HEAD")
    assert (direct.status, direct["ETag"], direct["Content-Length"]) == \
        (200, '"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"', "0")
    for target in (small["Location"], small["Location"].partition("?")[0]):
        followed = get(target)
        assert (followed.status, followed.body) == (200, FILES["config.json"])
        assert (followed["ETag"], followed["X-Repo-Commit"]) == (f'"{text.blob_id}"', model.head.id)
    stored = get(large["Location"])
    assert stored.body == BIG and stored["X-Repo-Commit"] is None
    assert len(stored["ETag"]) == 66 and entry.sha256 not in stored["ETag"]
    part = get(large["Location"], Range="bytes=100-199")
    assert (part.status, part.body) == (206, BIG[100:200])
    assert part["Content-Range"] == f"bytes 100-199/{len(BIG)}"
    assert get(large["Location"], Range=f"bytes={len(BIG) - 5}-").body == BIG[-5:]
    assert get(large["Location"], Range=f"bytes={len(BIG)}-").status == 416
    assert hub.coverage("w.safetensors", len(BIG)) == (1, 2)


def test_names_are_decoded_once(get):
    name = urllib.parse.quote("hash#?%41 \u00fc.txt")
    assert get(get(f"/org/m/resolve/main/{name}")["Location"]).body == b"odd"


def test_signed_urls_expire_by_the_clock_of_the_hub(hub, get):
    for signing in ("amazon", "cloudfront"):
        hub.signing = signing
        target = get(FILE)["Location"]
        assert get(target).status == 200
        assert get(target, "HEAD").status == 403
        assert get(target.replace("Signature=", "Signature=0")).status == 403
        assert get(target, Authorization="Bearer hf_reader").status == 400
        hub.advance(3590)
        assert get(target).status == 200
        hub.advance(11)
        gone = get(target)
        assert gone.status == 403 and b"Request has expired" in gone.body
        target = get(FILE)["Location"]
        hub.forget_signatures()
        assert get(target).status == 403


def test_revisions(hub, get, model):
    pull = model.commit({"config.json": b"pull"}, "refs/pr/1")
    for revision in ("refs%2Fpr%2F1", "refs/pr/1", pull):
        assert json.loads(get(f"/api/models/org/m/revision/{revision}").body)["sha"] == pull
        moved = get(f"/org/m/resolve/{revision}/config.json")
        assert get(moved["Location"]).body == b"pull"
    first = model.head.id
    second = model.commit(FILES)
    assert json.loads(get("/api/models/org/m").body)["sha"] == second != first
    assert json.loads(get("/api/models/org/m/revision/" + first).body)["sha"] == first
    assert model.commits[second].folders == model.commits[first].folders


def test_errors(get):
    def error(*arguments, **headers):
        answer = get(*arguments, **headers)
        return answer.status, answer["X-Error-Code"], answer["X-Error-Message"]

    reader, stranger = {"Authorization": "Bearer hf_reader"}, {"Authorization": "Bearer hf_stranger"}
    assert error("/api/models/org/none") == (401, None, "Invalid username or password.")
    assert error("/api/models/org/none", **reader)[:2] == (404, "RepoNotFound")
    assert error(FILE, Authorization="Bearer hf_dead") == (401, None, "Invalid credentials in Authorization header")
    assert error("/api/models/org/m/revision/none")[:2] == (404, "RevisionNotFound")
    missing = get("/org/m/resolve/main/none.txt", "HEAD")
    assert (missing.status, missing["X-Error-Code"], len(missing["X-Repo-Commit"])) == (404, "EntryNotFound", 40)
    assert error("/api/models/org/m/tree/main/none")[:2] == (404, "EntryNotFound")
    gated = "/org/gated/resolve/main/config.json"
    assert error(gated)[:2] == error(gated, Authorization="Bearer hf_dead")[:2] == (401, "GatedRepo")
    assert error(gated, **stranger)[:2] == (403, "GatedRepo")
    assert get(gated, **reader).body == FILES["config.json"]
    assert json.loads(get("/api/models/org/gated").body)["gated"] == "auto"


def test_pages_of_a_tree(hub, get):
    hub.page, paths, target = 3, [], TREE
    while target:
        answer = get(target)
        paths += listed(answer)
        link = answer["Link"]
        target = link and link[1:link.index(">")]
        assert target is None or target.startswith(hub.endpoint)
    assert sorted(paths) == sorted([*FILES, "a", "a/b"])
    hub.links_to = "https://example.com"
    assert get(TREE)["Link"].startswith("<https://example.com/api/models/org/m/tree/main?")


def test_small_texts_are_compressed_for_who_takes_it(hub, get):
    target = get(TEXT)["Location"]
    packed = get(target, Accept_Encoding="gzip", Range="bytes=0-9")
    assert packed.status == 200 and packed["Content-Length"] is None and packed["ETag"].startswith('W/"')
    assert gzip.decompress(packed.body) == FILES["config.json"]
    plain = get(target, Accept_Encoding="identity", Range="bytes=0-9")
    assert (plain.status, plain.body) == (206, FILES["config.json"][:10])
    assert json.loads(gzip.decompress(get(TREE, Accept_Encoding="gzip").body))


def test_limits(hub, get):
    hub.limits = {"api": (3, 300)}
    answers = [get("/api/models/org/m") for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert answers[1]["RateLimit"].startswith('"api";r=1;t=')
    assert answers[3]["RateLimit"].startswith('"api";r=0;t=')
    assert answers[3]["RateLimit-Policy"] == '"fixed window";"api";q=3;w=300'
    assert get("/api/models/org/m", Authorization="Bearer hf_reader").status == 200
    assert get(FILE).status == 302
    hub.advance(301)
    assert get("/api/models/org/m").status == 200


def test_the_log(hub, get):
    get(TEXT, "HEAD", Authorization="Bearer hf_reader", User_Agent="x")
    [request] = hub.asked("resolve")
    assert (request.method, request.file, request.token, request.status) == ("HEAD", "config.json", "hf_reader", 307)
    assert (request.repository, request.revision, request.client) == ("org/m", "main", "127.0.0.1")
    assert request.host == hub.endpoint[7:] and request.span is None


# ---- as it should not

def test_trees_that_lie(hub, get):
    hub.faults["tree"] = [hub_faults.endless(hub)]
    target, seen = TREE, set()
    for _ in range(20):
        answer = get(target)
        paths = listed(answer)
        assert paths and not seen & set(paths)
        seen |= set(paths)
        target = answer["Link"][1:answer["Link"].index(">")]
    hub.faults["tree"] = [hub_faults.circling(hub)]
    assert listed(get(get(TREE)["Link"].split(">")[0][1:])) == listed(get(TREE))
    hub.faults["tree"] = [hub_faults.twice("config.json"), hub_faults.also("../../etc/passwd", "config.json"),
                          hub_faults.sized("w.safetensors", 7)]
    items = json.loads(get(TREE).body)
    assert [item["path"] for item in items].count("config.json") == 2
    assert "../../etc/passwd" in [item["path"] for item in items]
    assert [item["lfs"]["size"] for item in items if item["path"] == "w.safetensors"] == [7]
    hub.faults["tree"] = [hub_faults.listing(hub_faults.pointer_sized)]
    [item] = [item for item in json.loads(get(TREE).body) if item["path"] == "w.safetensors"]
    assert item["size"] == item["lfs"]["pointerSize"] and item["lfs"]["size"] == len(BIG)


def test_redirects_that_lead_astray(hub, get):
    for change, begin in ((hub_faults.with_credentials, "http://user:secret@127.0.0.2"),
                          (hub_faults.with_scheme("ftp"), "ftp://127.0.0.2"),
                          (lambda _: hub_faults.METADATA_SERVICE, "http://169.254.169.254/")):
        hub.faults["resolve"] = [hub_faults.location(change)]
        assert get(FILE)["Location"].startswith(begin)
    hub.faults["resolve"] = [hub_faults.detour]
    first = get(FILE)
    assert first["X-Repo-Commit"] is None and get(first["Location"])["X-Linked-Etag"]
    hub.faults["resolve"] = [hub_faults.circle]
    assert get(FILE)["Location"] == FILE


def test_mirrors_that_strip(hub, get):
    hub.faults["resolve"] = [hub_faults.without("X-Linked-Size")]
    assert get(FILE)["X-Linked-Size"] is None
    hub.faults["cdn"] = [hub_faults.without("Content-Length", "Content-Range")]
    part = get(get(FILE)["Location"], Range="bytes=5-9")
    assert (part.status, part.body) == (206, BIG[5:10])
    assert part["Content-Length"] is None and part["Content-Range"] is None


def test_storage_that_fails(hub, get):
    target = get(FILE)["Location"]
    hub.faults["cdn"] = [hostile.once(hub_faults.dies(1000, hub))]
    assert get(target).cut
    assert get(target).status == 403
    target = get(FILE)["Location"]
    assert get(target).body == BIG
    hub.faults["cdn"] = [hostile.flip(1234)]
    wrong = get(target, Range="bytes=1000-1999").body
    assert [at for at in range(1000) if wrong[at] != BIG[1000 + at]] == [234]
    hub.faults["cdn", "w.safetensors"] = [hub_faults.expired]
    assert get(target).status == 403


def test_a_clock_that_is_off(hub, get):
    hub.clock = -3600
    answer = get(FILE)
    stamp = urllib.parse.parse_qs(urllib.parse.urlsplit(answer["Location"]).query)["X-Amz-Date"][0]
    assert get(answer["Location"]).status == 200
    told = email.utils.parsedate_to_datetime(answer["Date"])
    assert abs(told.timestamp() - hub.now()) < 5
    assert abs(int(stamp[9:11]) * 60 + int(stamp[11:13]) - told.hour * 60 - told.minute) <= 1


def test_large_files_are_read_from_where_they_are(hub, get, tmp_path):
    path = tmp_path / "large"
    path.write_bytes(BIG * 12)
    repository = hub.add(Repository("org/large", {"large.gguf": path}))
    target = get("/org/large/resolve/main/large.gguf")["Location"]
    assert get(target, Range="bytes=1000000-1000099").body == (BIG * 12)[1000000:1000100]
    assert repository.head.files["large.gguf"].sha256 == hashlib.sha256(BIG * 12).hexdigest()
