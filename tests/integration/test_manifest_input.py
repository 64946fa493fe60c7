# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Listings that are wrong, odd or huge: a clear error and nothing changed, or exactly what they say."""

import hashlib
import json
import os
import stat
import time

import pytest

import hostile
import models
from readers import read_at

NAME = "org/model"
EMPTY = hashlib.sha256(b"").hexdigest()
ONE = hashlib.sha256(b"x").hexdigest()


def entry(path, size=1, sha256=ONE, **more):
    return {"path": path, "size": size, "sha256": sha256} | more


def listing(*entries):
    return json.dumps({"files": list(entries)}).encode()


BAD = {
    "a parent directory": listing(entry("../x")),
    "a parent directory inside": listing(entry("a/../../x")),
    "a parent directory that stays inside": listing(entry("a/../b")),
    "an absolute path": listing(entry("/etc/passwd")),
    "an empty path": listing(entry("")),
    "a dot": listing(entry(".")),
    "a dot inside": listing(entry("a/./b")),
    "a double slash": listing(entry("a//b")),
    "a trailing slash": listing(entry("a/")),
    "a NUL": listing(entry("a\0b")),
    "a name of 256 bytes": listing(entry("x" * 256)),
    "a path of 5000 bytes": listing(entry("/".join(["x" * 100] * 50))),
    "a path of 129 components": listing(entry("/".join(["d"] * 129))),
    "a duplicate": listing(entry("a"), entry("a")),
    "a duplicate that differs": listing(entry("a"), entry("a", 0, EMPTY)),
    "one digest of two sizes": listing(entry("a", 1, ONE), entry("b", 2, ONE)),
    "a file that is also a folder": listing(entry("a"), entry("a/b")),
    "a folder that is also a file": listing(entry("a/b/c"), entry("a/b")),
    "a negative size": listing(entry("a", -1)),
    "a huge size": listing(entry("a", 1 << 63)),
    "a size beyond 64 bits": listing(entry("a", 1 << 80)),
    "a fractional size": listing(entry("a", 1.5)),
    "a size as text": listing(entry("a", "1")),
    "a size of true": listing(entry("a", True)),
    "no size": b'{"files":[{"path":"a","sha256":"%s"}]}' % ONE.encode(),
    "no path": b'{"files":[{"size":1,"sha256":"%s"}]}' % ONE.encode(),
    "a path that is a number": listing(entry(7)),
    "a path that is null": listing(entry(None)),
    "a short digest": listing(entry("a", 1, ONE[:-1])),
    "a long digest": listing(entry("a", 1, ONE + "0")),
    "a digest that is not hex": listing(entry("a", 1, "z" * 64)),
    "a digest that is a number": listing(entry("a", 1, 5)),
    "an mtime as text": listing(entry("a", mtime="yesterday")),
    "executable as text": listing(entry("a", executable="yes")),
    "files that are an object": b'{"files":{}}',
    "files that are null": b'{"files":null}',
    "no files": b"{}",
    "an entry that is text": b'{"files":["a"]}',
    "a list at the top": b"[]",
    "a number at the top": b"1",
    "nothing at all": b"",
    "no JSON": b"<html>Sign in to the network</html>",
    "JSON that stops": listing(entry("a"), entry("b"))[:-20],
    "something after the end": listing(entry("a")) + b"}",
    "deep nesting": b"[" * 100_000,
    "deep nesting inside an entry": b'{"files":[{"path":' + b"[" * 100_000,
    "text that is not UTF-8": b'{"files":[{"path":"\xff\xfe","size":1,"sha256":"%s"}]}' % ONE.encode(),
    "half a surrogate": b'{"files":[{"path":"\\ud800","size":1,"sha256":"%s"}]}' % ONE.encode(),
    "base64 that is none": b'{"files":[{"path_base64":"!!","size":1,"sha256":"%s"}]}' % ONE.encode(),
}


@pytest.fixture(scope="module")
def odd():
    """One origin and one mount for all of it: nothing that a listing says may harm the others."""
    with hostile.HostileOrigin({"good/weightfs.json": listing(entry("x")), "good/x": b"x"}) as source:
        yield source


@pytest.fixture(scope="module")
def victim(odd, work):
    import daemon
    import tempfile
    folder = tempfile.mkdtemp(prefix="victim-", dir=work)
    os.chmod(folder, 0o755)
    with daemon.Weightfs(folder, {"org/good": odd.url("good/")}) as mounted:
        yield mounted


@pytest.mark.short
@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_a_bad_manifest_is_refused_with_a_reason_and_nothing_changes(victim, odd, text):
    odd.files["bad/weightfs.json"] = text
    done = victim.cli("add", NAME, odd.url("bad/"), check=False, timeout=30)
    assert done.returncode == 1
    assert "weightfs.json" in done.stderr or "manifest" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, "one clear line"
    assert len(done.stderr) < 2000
    assert os.listdir(victim.mount / "org") == ["good"]
    assert read_at(victim.mount / "org/good/x", 0, 10) == b"x"


def test_200_megabytes_of_json_are_refused_by_a_limit(victim, odd):
    odd.files["bad/weightfs.json"] = b'{"files":[' + b" " * 200_000_000 + b"]}"
    began = time.monotonic()
    done = victim.cli("add", NAME, odd.url("bad/"), check=False)
    assert done.returncode == 1
    assert "limit" in done.stderr or "large" in done.stderr
    assert time.monotonic() - began < 20
    assert sum(request.sent for request in odd.of("bad/weightfs.json")[-1:]) < 150_000_000
    odd.files.pop("bad/weightfs.json")


@pytest.mark.short
@pytest.mark.parametrize("text", [b"not a checksum file\n", b"abc  file\n", ONE.encode() + b"\n",
                                  ONE.encode() + b"  ../x\n", ONE.encode() + b"  /x\n",
                                  ONE.encode() + b"  a\n" + EMPTY.encode() + b"  a\n", b"\0\0\0"],
                         ids=["prose", "short digest", "no name", "parent", "absolute", "duplicate", "NUL"])
def test_bad_checksums_are_refused(victim, odd, text):
    odd.files |= {"sums/SHA256SUMS": text, "sums/a": b"x"}
    odd.files.pop("sums/weightfs.json", None)
    done = victim.cli("add", NAME, odd.url("sums/"), check=False)
    assert done.returncode == 1
    assert "SHA256SUMS" in done.stderr
    assert os.listdir(victim.mount / "org") == ["good"]


# ---- odd, but right

def test_zero_byte_files_read_as_empty_and_can_be_waited_for(weightfs):
    files = models.served("m", {"empty": b"", "sub/empty too": b"", "one": b"x"})
    with hostile.HostileOrigin(files) as source:
        mounted = weightfs({NAME: source.url("m/")})
        assert read_at(mounted.mount / NAME / "empty", 0, 10) == b""
        mounted.wait(NAME)
        assert os.stat(mounted.mount / NAME / "sub/empty too").st_size == 0
        assert read_at(mounted.mount / NAME / "sub/empty too", 0, 10) == b""


def test_an_empty_model_is_an_empty_directory(weightfs):
    with hostile.HostileOrigin({"m/weightfs.json": listing()}) as source:
        mounted = weightfs({})
        done = mounted.cli("add", NAME, source.url("m/"), check=False)
        if done.returncode == 0:
            assert os.listdir(mounted.mount / NAME) == []
        else:
            assert done.returncode == 1 and done.stderr


def test_names_that_are_not_utf8_are_kept_as_bytes(weightfs, folder):
    raw = b"caf\xe9-\xff\xfe.bin"
    with hostile.HostileOrigin(models.served("m", {os.fsdecode(raw): b"bytes", "plain": b"x"})) as source:
        mounted = weightfs({NAME: source.url("m/")})
        assert raw in os.listdir(os.fsencode(mounted.mount / NAME))
        assert read_at(os.fsencode(mounted.mount / NAME) + b"/" + raw, 0, 10) == b"bytes"
        mounted.json("ls", NAME)
    plain = folder / "plain"
    plain.mkdir(mode=0o755)
    (plain / os.fsdecode(raw)).write_bytes(b"local")
    local = weightfs({NAME: f"file://{plain}"})
    assert read_at(os.fsencode(local.mount / NAME) + b"/" + raw, 0, 10) == b"local"
    local.wait(NAME)


def test_names_that_need_quoting_in_a_url(weightfs, origin, folder):
    names = ["a b", "c%20d", "e#f", "g?h", "i&j", "k+l", "é", "m;n", "o'p", 'q"r', "s\\t", "u\nv", "[w]",
             "-x", "~y", "z:1", ".hidden", "..hidden", "%"]
    root = folder / "root"
    (root / "m").mkdir(parents=True)
    root.chmod(0o755)
    for name in names:
        (root / "m" / name).write_text(name)
    model = models.describe(root / "m")
    mounted = weightfs({NAME: origin(root=root).url("m/")})
    assert sorted(os.listdir(mounted.mount / NAME)) == sorted(names)
    for name in names:
        assert read_at(mounted.mount / NAME / name, 0, 100) == model.data(name)
    models.write_checksums(model)
    mounted.cli("add", "org/sums", mounted.model(NAME)["source"])
    for name in names:
        assert read_at(mounted.mount / "org/sums" / name, 0, 100) == model.data(name)


@pytest.mark.seconds(300)
def test_a_hundred_thousand_files(weightfs):
    count = 100_000
    entries = [entry(f"d{i % 100}/f{i:06}", i % 7, f"{i % 7:064x}") for i in range(count)]
    with hostile.HostileOrigin({"m/weightfs.json": listing(*entries)}) as source:
        mounted = weightfs({})
        began = time.monotonic()
        mounted.cli("add", NAME, source.url("m/"))
        assert time.monotonic() - began < 30
        found = 0
        for root, _, names in os.walk(mounted.mount / NAME):
            found += len(names)
        assert found == count
        assert stat.S_ISREG(os.stat(mounted.mount / NAME / "d42/f000042").st_mode)
        mounted.stop()
        began = time.monotonic()
        mounted.start()
        assert time.monotonic() - began < 10
        assert len(os.listdir(mounted.mount / NAME / "d7")) == count // 100


def test_a_deep_tree(weightfs):
    path = "/".join(f"d{i}" for i in range(127)) + "/leaf"  # 128 components are the limit
    with hostile.HostileOrigin(models.served("m", {path: b"deep"})) as source:
        mounted = weightfs({NAME: source.url("m/")})
        assert read_at(mounted.mount / NAME / path, 0, 10) == b"deep"
