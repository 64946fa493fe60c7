# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""An origin that misbehaves: right bytes or a clear error, never wrong bytes, never a dead daemon."""

import errno
import os
import time

import pytest

import hostile
import models
from readers import error_of, pread_all, read_at
from waiting import until

MIB = 1 << 20
NAME = "org/model"
FILE = "w.safetensors"
PATH = f"m/{FILE}"
# More than one part, so that parts can disagree.
CONTENT = b"".join(models.noise("hostile", 20 * MIB))
IMPATIENT = {"stall_timeout": "2s", "deadline": "4s"}
PATIENT = {"stall_timeout": "2s"}  # where a reader must not see it, however busy the machine is
pytestmark = pytest.mark.short


@pytest.fixture
def source():
    with hostile.HostileOrigin(models.served("m", {FILE: CONTENT})) as origin:
        yield origin


@pytest.fixture
def start(weightfs, source):
    """Mounts with these faults on the file's path; returns (mounted, path of the file)."""
    def make(*faults, url=None, config=None, **options):
        mounted = weightfs({NAME: url or source.url("m/")}, config=config or IMPATIENT, **options)
        source.faults[PATH] = list(faults)
        return mounted, mounted.mount / NAME / FILE
    return make


def whole(path):
    return read_at(path, 0, len(CONTENT))


PASSING = {
    "a short body once": hostile.once(hostile.short(1000)),
    "an empty body once": hostile.once(hostile.short(1 << 40)),
    "a reset once": hostile.once(hostile.reset(5000)),
    "a reset of each part's first answer": hostile.first(3, hostile.reset(100_000)),
    "a refused connection, twice": hostile.first(2, hostile.refuse),
    "a stall once": hostile.once(hostile.stall(5000)),
    "503 with Retry-After, twice": hostile.first(2, hostile.status(503, Retry_After="1")),
    "429 with Retry-After once": hostile.once(hostile.status(429, Retry_After="1")),
    "500 once": hostile.once(hostile.status(500)),
    "502, 504 and 408": lambda reply, request: (
        hostile.status([502, 504, 408][request.number])(reply, request) if request.number < 3 else None),
    "a redirect to another host": None,  # filled in by its test below
}


@pytest.mark.parametrize("fault", [fault for fault in PASSING.values() if fault],
                         ids=[name for name, fault in PASSING.items() if fault])
def test_what_passes_is_retried_and_no_reader_sees_it(start, fault):
    mounted, path = start(fault, config=PATIENT)
    assert whole(path) == CONTENT
    mounted.wait(NAME)


# What each fault gives, and what `why` must say of it. All but the wrong byte show at the first open.
LASTING = {
    "every body short": (hostile.short(1000), errno.ETIMEDOUT, "1000 bytes remaining"),
    "every body longer than asked": (hostile.long(1000), errno.EIO, "with a length of"),
    "a wrong byte": (hostile.flip(15 * MIB), errno.EIO, "has the digest"),
    "416 to a range that exists": (
        hostile.status(416, Content_Range=f"bytes */{len(CONTENT)}"), errno.ESTALE, "answered 416"),
    "416 with another size": (hostile.status(416, Content_Range="bytes */7"), errno.ESTALE, "answered 416"),
    "another range than asked": (hostile.shifted(4096), errno.EIO, "bytes 4096-"),
    "a 206 without Content-Range": (hostile.unsized_range, errno.EIO, "without saying which"),
    "multipart/byteranges": (hostile.multipart, errno.EIO, "several parts"),
    "a compressed body": (hostile.compressed, errno.EIO, "gzip"),
    "a stall every time": (hostile.stall(0), errno.ETIMEDOUT, "timed out"),
    "a reset every time": (hostile.reset(0), errno.ETIMEDOUT, "reset by peer"),
    "refused every time": (hostile.refuse, errno.ETIMEDOUT, "reset by peer"),
    "503 every time": (hostile.status(503, Retry_After="1"), errno.ETIMEDOUT, "answered 503"),
    "Retry-After of a day": (hostile.status(503, Retry_After="86400"), errno.ETIMEDOUT, "answered 503"),
    "500 every time": (hostile.status(500), errno.ETIMEDOUT, "answered 500"),
    "404": (hostile.status(404), errno.ESTALE, "answered 404"),
    "410": (hostile.status(410), errno.ESTALE, "answered 410"),
    "204": (hostile.status(204), errno.EIO, "answered 204"),
    "a nonsense status": (hostile.status(299), errno.EIO, "answered 299"),
}


@pytest.mark.parametrize("fault, code, word", LASTING.values(), ids=LASTING.keys())
def test_what_lasts_is_an_error_in_time_and_its_end_mends_it(start, source, fault, code, word):
    mounted, path = start(hostile.ranged(fault))
    began = time.monotonic()
    if word == "has the digest":  # which is known at the end
        assert error_of(lambda: check_right(path)) == code
    else:
        assert error_of(os.open, path, os.O_RDONLY) == code
    assert time.monotonic() - began < 40
    assert word in mounted.cli("why", path, check=False).stdout
    source.faults.clear()
    until(lambda: error_of(whole, path) is None, 40, "the file can be read once the origin is well")
    assert whole(path) == CONTENT
    mounted.wait(NAME)


def check_right(path):
    """Reads all of it; wrong bytes fail the test whatever else happens."""
    assert whole(path) == CONTENT, "wrong bytes"


@pytest.mark.parametrize("code", [401, 403])
def test_no_permission_is_eacces_and_is_not_retried(start, source, code):
    mounted, path = start(hostile.status(code))
    assert error_of(os.open, path, os.O_RDONLY) == errno.EACCES
    assert len(source.of(PATH)) <= 20
    assert "127.0.0.1" in mounted.cli("why", path, check=False).stdout


def test_a_server_without_ranges_is_read_as_one_stream(start, source):
    _, path = start(hostile.ranged(hostile.whole(CONTENT)), config=PATIENT)
    check_right(path)
    assert sum(request.sent for request in source.of(PATH)) < 6 * len(CONTENT)


# ---- redirects

def test_a_redirect_in_a_circle_is_an_error(start, source):
    _, path = start(hostile.redirect("/" + PATH))
    assert error_of(os.open, path, os.O_RDONLY) == errno.EIO
    assert len(source.of(PATH)) < 2000


def test_a_redirect_to_another_host_is_followed_without_credentials(start, source, folder):
    with hostile.HostileOrigin({"elsewhere": CONTENT}, address="127.0.0.2") as other:
        _, path = start(hostile.redirect(other.url("elsewhere")), config=PATIENT)
        assert whole(path) == CONTENT
        assert all("Authorization" not in request.headers and "Cookie" not in request.headers
                   for request in other.requests)


def test_a_redirect_to_another_host_with_other_bytes_is_an_error(start, source):
    bad = bytes(len(CONTENT))
    with hostile.HostileOrigin({"elsewhere": bad}, address="127.0.0.2") as other:
        mounted, path = start(hostile.redirect(other.url("elsewhere")))
        mounted.cli("warm", NAME, "--wait", check=False)
        assert error_of(whole, path) == errno.EIO
        assert not mounted.blobs()


def test_a_redirect_to_a_file_is_refused(start):
    _, path = start(hostile.redirect("file:///etc/passwd"))
    assert error_of(os.open, path, os.O_RDONLY) == errno.EIO


def test_a_downgrade_from_https_to_http_is_refused(weightfs, source, certificates):
    with hostile.HostileOrigin(models.served("m", {FILE: CONTENT}), tls=certificates) as secure:
        mounted = weightfs({NAME: secure.url("m/")}, config=IMPATIENT | {"ca_bundle": str(certificates.ca)})
        path = mounted.mount / NAME / FILE
        secure.faults[PATH] = [hostile.redirect(source.url(PATH))]
        assert error_of(os.open, path, os.O_RDONLY) == errno.EIO
        assert not source.of(PATH)
        secure.faults.clear()
        until(lambda: error_of(whole, path) is None, 20, "https itself works")
        assert whole(path) == CONTENT


def test_a_certificate_that_nobody_vouches_for_is_refused(weightfs, certificates):
    with hostile.HostileOrigin(models.served("m", {FILE: CONTENT}), tls=certificates) as secure:
        mounted = weightfs({})
        done = mounted.cli("add", NAME, secure.url("m/"), check=False)
        assert done.returncode == 1
        assert "certificate" in done.stderr.lower()


# ---- the object changes

def test_an_object_that_changes_while_it_is_fetched_never_mixes(weightfs):
    """Content known by validator only: half of one version and half of the next must not become a blob."""
    other = CONTENT[::-1]
    with hostile.HostileOrigin({"one/" + FILE: CONTENT}) as source:
        mounted = weightfs({NAME: source.url("one/" + FILE)}, config=IMPATIENT)
        source.faults["one/" + FILE] = [hostile.slow(MIB)]
        path = mounted.mount / NAME / FILE
        descriptor = os.open(path, os.O_RDONLY)
        assert os.pread(descriptor, 4096, 0) == CONTENT[:4096]
        source.files["one/" + FILE] = other
        source.faults.clear()
        code = error_of(lambda: check_reads(descriptor))
        os.close(descriptor)
        assert code == errno.EIO, "in a read, which cannot be tried with another node"
        assert error_of(os.open, path, os.O_RDONLY) == errno.ESTALE
        assert "weightfs update" in mounted.cli("why", path, check=False).stdout
        assert not mounted.blobs()
        mounted.cli("update", NAME)
        until(lambda: error_of(whole, mounted.mount / NAME / FILE) is None, 20, "the new version")
        assert whole(mounted.mount / NAME / FILE) == other


def check_reads(descriptor):
    for offset in range(0, len(CONTENT), MIB):
        assert pread_all(descriptor, offset, MIB) == CONTENT[offset:offset + MIB], "mixed versions"


def test_a_source_that_changed_between_add_and_the_read(weightfs, folder):
    plain = folder / "plain"
    plain.mkdir(mode=0o755)
    (plain / FILE).write_bytes(CONTENT)
    mounted = weightfs({NAME: f"file://{plain}"})
    (plain / FILE).write_bytes(CONTENT[::-1])
    assert error_of(os.open, mounted.mount / NAME / FILE, os.O_RDONLY) == errno.ESTALE
    mounted.cli("update", NAME)
    assert whole(mounted.mount / NAME / FILE) == CONTENT[::-1]


def test_a_listed_file_that_is_shorter_or_longer_at_the_source(weightfs):
    for change in (CONTENT[:-1000], CONTENT + b"x" * 1000):
        files = models.served("m", {FILE: CONTENT})
        files[PATH] = change
        with hostile.HostileOrigin(files) as source:
            mounted = weightfs({NAME: source.url("m/")}, config=IMPATIENT)
            assert error_of(os.open, mounted.mount / NAME / FILE, os.O_RDONLY) == errno.ESTALE
            assert not mounted.blobs()


# ---- the listing itself

@pytest.mark.parametrize("fault, word", [
    (hostile.status(404), "404"), (hostile.status(403), "403"), (hostile.status(500), "500"),
    (hostile.refuse, "127.0.0.1"), (hostile.redirect("/m/weightfs.json"), "redirect"),
    (hostile.short(10), "weightfs.json")],
    ids=["404", "403", "500", "refused", "redirect loop", "short"])
def test_a_listing_that_cannot_be_had_fails_the_add_with_a_reason(weightfs, source, fault, word):
    source.faults |= {"m/weightfs.json": [fault], "m/SHA256SUMS": [fault]}
    mounted = weightfs({}, config=IMPATIENT)
    done = mounted.cli("add", NAME, source.url("m/"), check=False)
    assert done.returncode in (1, 3)
    assert word in done.stderr
    assert not os.listdir(mounted.mount)
    source.faults.clear()
    mounted.cli("add", NAME, source.url("m/"))
    assert whole(mounted.mount / NAME / FILE) == CONTENT


def test_requests_ask_for_the_bytes_as_they_are(start, source):
    _, path = start(config=PATIENT)
    assert whole(path) == CONTENT
    for request in source.of(PATH):
        assert request.headers.get("Accept-Encoding", "identity") == "identity"
        assert request.span is not None
