# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""An HTTP server on a loopback address, in threads of the test's own process, that can misbehave.

Every answer is planned whole (Reply), may then be changed, and is sent last: what leaves the socket is what
the Reply says, wrong or not.
"""

import dataclasses
import http.server
import socket
import struct
import threading
import time

from origin import parse_range


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
    chunked: bool = False        # the body in chunks, without Content-Length


class Server:
    """Listens from the start, serves within `with`. Derived classes answer:

    ask(handler) -> Request, begin(request), plan(request) -> Reply (may raise nothing), end(request).
    begin() is told of every request before it is planned; end() once or more often, before the last bytes
    of a whole answer leave, as the client may ask again at once.
    """

    def __init__(self, address="127.0.0.1", tls=None):
        server = self

        class Handler(_Handler):
            def __init__(self, *arguments):
                self.origin = server
                super().__init__(*arguments)

        self.stopped = threading.Event()
        self._server = http.server.ThreadingHTTPServer((address, 0), Handler, bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._server.request_queue_size = 128
        self._server.handle_error = lambda *_: None
        self._server.server_bind()
        self._server.server_activate()
        self._tls = tls
        if tls:
            self._server.socket = tls.context().wrap_socket(self._server.socket, server_side=True,
                                                            do_handshake_on_connect=False)
        self.address, self.port = self._server.server_address[:2]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True,
                                        kwargs={"poll_interval": 0.02})  # how long its end takes

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def url(self, path="", host=None):
        return f"http{'s' if self._tls else ''}://{host or self.address}:{self.port}/{path}"

    def date(self):
        """The time that answers tell, in seconds."""
        return time.time()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits for the ACK of its head
    timeout = 60

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return super().date_time_string(self.origin.date() if timestamp is None else timestamp)

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def do_POST(self):
        self._answer()

    def _answer(self):
        request = self.origin.ask(self)
        self.origin.begin(request)
        try:
            reply = self.origin.plan(request)
            request.status = reply.status
            self._send(reply, request)
        except OSError:
            self.close_connection = True
        finally:
            self.origin.end(request)

    def span(self):
        return parse_range(self.headers.get("Range"))

    def _send(self, reply, request):
        if reply.refuse:
            return self._reset()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if request.method == "HEAD":
            return None
        view = memoryview(reply.body)[:reply.cut]
        step = max(1, min(64 << 10, reply.rate // 20)) if reply.rate else 1 << 20
        began = time.monotonic()
        for offset in range(0, len(view), step):
            if offset + step >= len(view) and reply.cut is None:
                self.origin.end(request)  # before its last bytes leave: the client may ask again at once
            self._write(view[offset:offset + step], reply.chunked)
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
        elif reply.chunked:
            self.wfile.write(b"0\r\n\r\n")
        return None

    def _write(self, piece, chunked):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)

    def _reset(self):
        """Closes with RST in place of FIN."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
