# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""An HTTP origin that misbehaves on request.

Each answer is planned as a well-behaved server would give it (Reply), then changed by the faults of its
path, then sent. A fault is a function (reply, request) -> None that changes the reply; `once`, `first`,
`after` and `ranged` narrow down when it applies.
"""

import email.utils
import gzip
import hashlib
import threading
import time
import urllib.parse

from loopback import Reply, Request, Server

LAST_MODIFIED = 1_700_000_000


# ---- faults

def short(by):
    """The body ends `by` bytes early; Content-Length does not say so."""
    def fault(reply, _):
        reply.cut = max(0, len(reply.body) - by)
    return fault


def long(by):
    """The body is longer than what was asked for, and Content-Length says so."""
    def fault(reply, _):
        reply.body += b"\xee" * by
        reply.headers["Content-Length"] = str(len(reply.body))
    return fault


def flip(offset):
    """One byte of the file, at this offset, is wrong in every answer."""
    def fault(reply, request):
        begin = request.span[0] if request.span and reply.status == 206 else 0
        if begin <= offset < begin + len(reply.body):
            body = bytearray(reply.body)
            body[offset - begin] ^= 0xFF
            reply.body = bytes(body)
    return fault


def status(code, **headers):
    """An error in place of the answer."""
    def fault(reply, _):
        reply.status, reply.body = code, b"no\n"
        reply.headers = {"Content-Length": "3"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return fault


def whole(content):
    """Answers a range with 200 and the whole file."""
    def fault(reply, _):
        reply.status, reply.body = 200, content
        reply.headers.pop("Content-Range", None)
        reply.headers["Content-Length"] = str(len(content))
    return fault


def shifted(by):
    """Another range than the one that was asked for, honestly labelled."""
    def fault(reply, request):
        begin, end = request.span
        total = reply.headers["Content-Range"].rsplit("/", 1)[1]
        reply.headers["Content-Range"] = f"bytes {begin + by}-{end - 1 + by}/{total}"
    return fault


def unsized_range(reply, _):
    """A 206 without Content-Range."""
    reply.headers.pop("Content-Range", None)


def multipart(reply, request):
    """The range wrapped as multipart/byteranges."""
    head = f"--xx\r\nContent-Range: {reply.headers.pop('Content-Range')}\r\n\r\n".encode()
    reply.body = head + reply.body + b"\r\n--xx--\r\n"
    reply.headers |= {"Content-Type": "multipart/byteranges; boundary=xx",
                      "Content-Length": str(len(reply.body))}


def compressed(reply, _):
    """The body compressed though nobody asked for it."""
    reply.body = gzip.compress(reply.body, 1)
    reply.headers |= {"Content-Encoding": "gzip", "Content-Length": str(len(reply.body))}


def redirect(url):
    def fault(reply, _):
        reply.status, reply.body = 302, b""
        reply.headers = {"Location": url, "Content-Length": "0"}
    return fault


def stall(after):
    """Falls silent after so many bytes of the body."""
    def fault(reply, _):
        reply.cut, reply.ending = after, "stall"
    return fault


def reset(after):
    """Resets the connection after so many bytes of the body."""
    def fault(reply, _):
        reply.cut, reply.ending = after, "reset"
    return fault


def refuse(reply, _):
    reply.refuse = True


def slow(rate):
    """So many bytes per second on each connection."""
    def fault(reply, _):
        reply.rate = rate
    return fault


# ---- when they apply

def first(count, fault):
    """Only to the first `count` requests of the path."""
    return lambda reply, request: fault(reply, request) if request.number < count else None


def once(fault):
    return first(1, fault)


def after(count, fault):
    """Only once `count` requests of the path were served well."""
    return lambda reply, request: fault(reply, request) if request.number >= count else None


def ranged(fault):
    """Only to ranged requests."""
    return lambda reply, request: fault(reply, request) if request.span else None


# ---- the server

class HostileOrigin(Server):
    """Serves `files` ({path: bytes}) on a loopback address; `faults` is {path: [fault, ...]}.

    Both may be changed while it runs. `requests` has every request so far, `peak` the most that ran at
    once per path (and in all, under None).
    """

    def __init__(self, files, address="127.0.0.1", tls=None):
        super().__init__(address, tls)
        self.files, self.faults, self.requests, self.peak = dict(files), {}, [], {}
        self._running, self._lock = {}, threading.Lock()

    def etag(self, path):
        return '"' + hashlib.sha256(self.files[path]).hexdigest()[:20] + '"'

    def of(self, path, method="GET"):
        return [request for request in list(self.requests)
                if request.path == path and request.method == method]

    def ask(self, handler):
        path = urllib.parse.unquote_to_bytes(handler.path).decode(errors="surrogateescape")[1:]
        return Request(handler.command, path, handler.headers, handler.span(), 0, time.monotonic())

    def begin(self, request):
        with self._lock:
            request.number = sum(1 for other in self.requests
                                 if other.path == request.path and other.method == request.method)
            self.requests.append(request)
            for key in (request.path, None):
                self._running[key] = self._running.get(key, 0) + 1
                self.peak[key] = max(self.peak.get(key, 0), self._running[key])

    def end(self, request):
        """Once or more often."""
        with self._lock:
            if request.over:
                return
            request.over = True
            for key in (request.path, None):
                self._running[key] -= 1

    def plan(self, request):
        reply = self._well_behaved(request)
        for fault in list(self.faults.get(request.path, [])):
            fault(reply, request)
        return reply

    def _well_behaved(self, request):
        """The answer of a well-behaved server."""
        content = self.files.get(request.path)
        if content is None:
            return Reply(404, {"Content-Length": "0"}, b"")
        etag = self.etag(request.path)
        headers = {"ETag": etag, "Accept-Ranges": "bytes",
                   "Last-Modified": email.utils.formatdate(LAST_MODIFIED, usegmt=True)}
        if request.headers.get("If-Match", etag) not in (etag, "*"):
            return Reply(412, {"Content-Length": "0"}, b"")
        span = request.span if request.headers.get("If-Range", etag) == etag else None
        if span is None:
            return Reply(200, headers | {"Content-Length": str(len(content))}, content)
        begin, end = span[0], min(span[1], len(content))
        if begin >= len(content):
            return Reply(416, {"Content-Range": f"bytes */{len(content)}", "Content-Length": "0"}, b"")
        headers |= {"Content-Range": f"bytes {begin}-{end - 1}/{len(content)}",
                    "Content-Length": str(end - begin)}
        return Reply(206, headers, content[begin:end])
