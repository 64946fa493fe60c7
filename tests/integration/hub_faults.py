# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""How a hub, a mirror of one or its storage can misbehave: faults for hub.Hub, beside those of hostile.py.

Those of hostile.py that fit as they are: short, long, flip, status, stall, reset, refuse, slow, unsized_range,
shifted, multipart, and once, first, after, ranged. What the hub has switches for is not here: clock, tokens,
limits, expires, forget_signatures(), links_to.
"""

import base64
import json
import re
import urllib.parse

from hub import DETOUR

METADATA_SERVICE = "http://169.254.169.254/latest/meta-data/iam/security-credentials/"


# ---- headers

def without(*names):
    """A mirror that strips headers. A body without Content-Length is sent in chunks."""
    def fault(reply, request):
        for name in names:
            reply.headers.pop(name, None)
        if "Content-Length" in names and reply.body and request.method != "HEAD":
            reply.chunked = True
    return fault


def header(name, value):
    """Says `value`, in place of what was there or not. None of the body changes."""
    def fault(reply, _):
        reply.headers[name] = value
    return fault


def only(method, fault):
    """Only to requests of this method."""
    return lambda reply, request: fault(reply, request) if request.method == method else None


# ---- lists of files

def listing(change):
    """Passes the entries of a page through change(entries) -> entries."""
    def fault(reply, _):
        if reply.status == 200:
            _replace(reply, change(json.loads(reply.body)))
    return fault


def twice(path):
    """One path is listed twice: on the page that it is on."""
    return listing(lambda items: items + [item for item in items if item["path"] == path])


def also(path, like):
    """A further path, such as one that escapes, with the content of another."""
    return listing(lambda items: items + [item | {"path": path} for item in items if item["path"] == like])


def sized(path, size):
    """The tree says another size, at both places where it may say one."""
    def change(items):
        for item in items:
            if item["path"] == path:
                item["size"] = size
                if "lfs" in item:
                    item["lfs"]["size"] = size
        return items
    return listing(change)


def pointer_sized(items):
    """change for listing(): outside of "lfs", the size is that of the pointer, as some hubs have it."""
    return [item | {"size": item["lfs"]["pointerSize"]} if "lfs" in item else item for item in items]


def endless(hub):
    """A tree that never ends: each page is new, and has a link to the next."""
    beyond = 1_000_000

    def fault(reply, request):
        if reply.status != 200:
            return
        place = int(base64.b64decode(request.query.get("cursor", "MA==")))
        page = max(0, place - beyond)
        if page:
            _replace(reply, [{"type": "file", "oid": f"{page * 1000 + at:040x}", "size": 1,
                              "path": f"more/{page}/{at}.txt"} for at in range(100)])
        hub.link(reply, request, base64.b64encode(b"%d" % (beyond + page + 1)).decode())
    return fault


def circling(hub):
    """A tree whose only page names itself as the next."""
    def fault(reply, request):
        hub.link(reply, request, request.query.get("cursor", "MA=="))
    return fault


def _replace(reply, value):
    reply.body = json.dumps(value).encode()
    reply.headers["Content-Length"] = str(len(reply.body))


# ---- redirects

def location(change):
    """Passes the target of a redirect through change(target) -> target."""
    def fault(reply, _):
        if "Location" in reply.headers:
            reply.headers["Location"] = change(reply.headers["Location"])
    return fault


def elsewhere(url):
    """Sends to this URL whoever is redirected."""
    return location(lambda _: url)


def with_credentials(target):
    """change for location(): a user and a password in the URL."""
    return re.sub(r"^(https?://)", r"\1user:secret@", target)


def with_scheme(scheme):
    """change for location(): the same URL under another scheme."""
    return lambda target: re.sub(r"^https?:", scheme + ":", target)


def absolute(hub):
    """change for location(): a relative target made absolute."""
    return lambda target: urllib.parse.urljoin(hub.endpoint, target)


def detour(reply, request):
    """A mirror that first redirects, without any metadata, to itself."""
    if not request.target.startswith(DETOUR):
        reply.status, reply.body = 302, b""
        reply.headers = {"Location": DETOUR + request.target, "Content-Length": "0"}


def circle(reply, request):
    """Redirects to the same URL for ever."""
    reply.status, reply.body, reply.headers = 307, b"", {"Location": request.target, "Content-Length": "0"}


# ---- storage

def expired(reply, _):
    """A signed URL that is dead, whatever its fields say."""
    reply.status = 403
    reply.body = b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>'
    reply.headers = {"Content-Type": "application/xml", "Content-Length": str(len(reply.body))}


def dies(after, hub):
    """The connection ends after so many bytes of the body, and with it every URL signed so far is dead."""
    def fault(reply, _):
        if reply.status in (200, 206):
            reply.cut, reply.ending = after, "reset"
            hub.forget_signatures()
    return fault


def login_page(reply, _):
    """A login page of a proxy, with 200, in place of the answer."""
    reply.status, reply.body = 200, b"<!DOCTYPE html><html><body>Please log in</body></html>"
    reply.headers = {"Content-Type": "text/html", "Content-Length": str(len(reply.body))}
