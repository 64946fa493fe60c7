# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""An HTTP origin that misbehaves on request, in threads of the test's own process.

Each answer is planned as a well-behaved server would give it (Reply), then changed by the faults of its
path, then sent. A fault is a function (reply, request) -> None that changes the reply; `once`, `first`,
`after` and `ranged` narrow down when it applies.
"""

import dataclasses
import email.utils
import gzip
import hashlib
import http.server
import socket
import ssl
import struct
import threading
import time
import urllib.parse

from origin import parse_range

LAST_MODIFIED = 1_700_000_000


@dataclasses.dataclass
class Request:
    method: str
    path: str
    headers: object
    span: tuple | None     # (begin, end) of the asked range
    number: int            # of this path's requests, from 0
    began: float = 0.0
    status: int | None = None
    sent: int = 0
    over: bool = False


@dataclasses.dataclass
class Reply:
    """What goes over the wire. Without faults: `body` in full, then the connection stays open."""
    status: int
    headers: dict
    body: bytes
    cut: int | None = None       # send only so many bytes of the body, then ...
    ending: str = "close"        # ... "close", "reset" or "stall" (until the server stops)
    rate: int | None = None      # bytes per second
    refuse: bool = False         # reset before any answer


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

class HostileOrigin:
    """Serves `files` ({path: bytes}) on a loopback address; `faults` is {path: [fault, ...]}.

    Both may be changed while it runs. `requests` has every request so far, `peak` the most that ran at
    once per path (and in all, under None).
    """

    def __init__(self, files, address="127.0.0.1", tls=None):
        self.files, self.faults, self.requests, self.peak = dict(files), {}, [], {}
        self._running, self._lock, self._stopped = {}, threading.Lock(), threading.Event()
        origin = self

        class Handler(_Handler):
            def __init__(self, *arguments):
                self.origin = origin
                super().__init__(*arguments)

        self._server = http.server.ThreadingHTTPServer((address, 0), Handler, bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._server.request_queue_size = 128
        self._server.handle_error = lambda *_: None
        self._server.server_bind()
        self._server.server_activate()
        self._tls = tls
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.chain, tls.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True,
                                                      do_handshake_on_connect=False)
        self.address, self.port = self._server.server_address[:2]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def url(self, path="", host=None):
        return f"http{'s' if self._tls else ''}://{host or self.address}:{self.port}/{path}"

    @property
    def stopped(self):
        return self._stopped

    def etag(self, path):
        return '"' + hashlib.sha256(self.files[path]).hexdigest()[:20] + '"'

    def of(self, path, method="GET"):
        return [request for request in list(self.requests)
                if request.path == path and request.method == method]

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


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        path = urllib.parse.unquote_to_bytes(self.path).decode(errors="surrogateescape")[1:]
        request = Request(self.command, path, self.headers, parse_range(self.headers.get("Range")), 0,
                          time.monotonic())
        self.origin.begin(request)
        try:
            reply = self._plan(request)
            for fault in list(self.origin.faults.get(path, [])):
                fault(reply, request)
            request.status = reply.status
            self._send(reply, request)
        except OSError:
            self.close_connection = True
        finally:
            self.origin.end(request)

    def _plan(self, request):
        """The answer of a well-behaved server."""
        content = self.origin.files.get(request.path)
        if content is None:
            return Reply(404, {"Content-Length": "0"}, b"")
        etag = self.origin.etag(request.path)
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

    def _send(self, reply, request):
        if reply.refuse:
            return self._reset()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if request.method == "HEAD":
            return None
        view = memoryview(reply.body)[:reply.cut]
        step = max(1, min(64 << 10, reply.rate // 20)) if reply.rate else 1 << 20
        began = time.monotonic()
        for offset in range(0, len(view), step):
            if offset + step >= len(view) and reply.cut is None:
                self.origin.end(request)  # before its last bytes leave: the client may ask again at once
            self.wfile.write(view[offset:offset + step])
            request.sent += len(view[offset:offset + step])
            if reply.rate and self.origin.stopped.wait(
                    max(0, began + request.sent / reply.rate - time.monotonic())):
                break
        if reply.cut is not None:
            self.close_connection = True
            if reply.ending == "stall":
                self.origin.stopped.wait(600)
            if reply.ending == "reset":
                self._reset()
        return None

    def _reset(self):
        """Closes with RST in place of FIN."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
