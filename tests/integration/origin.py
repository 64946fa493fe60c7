# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A real nginx on loopback as the origin, and what its request log says."""

import dataclasses
import json
import pathlib
import re
import socket
import subprocess

from processes import is_running
from waiting import until

CONFIG = """
daemon off;
user root;
worker_processes 2;
pid {home}/pid;
error_log {home}/error.log warn;
events {{ worker_connections 1024; }}
http {{
  log_format counted escape=json '{{"method":"$request_method","path":"$uri","range":"$http_range",'
    '"status":$status,"sent":$body_bytes_sent,"connection":$connection,"time":$msec}}';
  access_log {home}/access.log counted;
  client_body_temp_path {home}/tmp; proxy_temp_path {home}/tmp; fastcgi_temp_path {home}/tmp;
  uwsgi_temp_path {home}/tmp; scgi_temp_path {home}/tmp;
  default_type application/octet-stream;
  sendfile on;
  keepalive_requests 100000;
  keepalive_timeout 60s;
  lingering_close off;
  server {{
    listen 127.0.0.1:{port}{tls};
    root {root};
    {rate}
  }}
}}
"""


@dataclasses.dataclass(frozen=True)
class Request:
    method: str
    path: str
    status: int
    begin: int   # of the body in the file
    sent: int    # bytes of the body
    asked: int | None  # length of the range, None where there was none

    @property
    def end(self):
        return self.begin + self.sent


def free_port(address="127.0.0.1"):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def parse_range(text):
    match = re.fullmatch(r"bytes=(\d+)-(\d+)", text or "")
    return (int(match[1]), int(match[2]) + 1) if match else None


class NginxOrigin:
    """Serves `root` with ranges; `rate` is bytes per second and connection (nginx's limit_rate).

    The port stays the same over stop() and start().
    """

    def __init__(self, root, home, rate=None, tls=None):
        self.root, self.home, self.rate, self.tls = pathlib.Path(root), pathlib.Path(home), rate, tls
        self.port = free_port()
        self.process = None
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "tmp").mkdir(exist_ok=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def url(self, path=""):
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/{path}"

    def start(self):
        tls = f" ssl; ssl_certificate {self.tls.chain}; ssl_certificate_key {self.tls.key}" if self.tls else ""
        rate = f"limit_rate {self.rate};" if self.rate else ""
        config = self.home / "nginx.conf"
        config.write_text(CONFIG.format(home=self.home, root=self.root, port=self.port, rate=rate, tls=tls))
        self.process = subprocess.Popen(["nginx", "-p", str(self.home), "-c", str(config)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=open(self.home / "stderr.log", "ab"))
        until(self._listens, 10, "nginx listens")

    def _listens(self):
        assert self.process.poll() is None, (self.home / "stderr.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        """Ends it at once; transfers under way are cut."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        assert not is_running(self.process.pid)
        self.process = None

    def restart(self, rate):
        """With another rate; transfers under way are cut."""
        self.stop()
        self.rate = rate
        self.start()

    def clear(self):
        """Forgets the requests so far."""
        (self.home / "access.log").write_text("")

    def requests(self, path=None):
        """Requests that are over, oldest first; of one path (as in the URL, no leading '/') or all."""
        found = []
        for line in (self.home / "access.log").read_text(errors="replace").splitlines():
            entry = json.loads(line)
            if path is not None and entry["path"] != "/" + path:
                continue
            span = parse_range(entry["range"])
            begin = span[0] if span and entry["status"] == 206 else 0
            asked = span[1] - span[0] if span else None
            carries = entry["method"] == "GET" and entry["status"] in (200, 206)
            found.append(Request(entry["method"], entry["path"][1:], entry["status"], begin,
                                 entry["sent"] if carries else 0, asked))
        return found

    def last_sent(self, below):
        """When the last answer of what is below a path was sent, by the origin's clock; seconds since 1970."""
        lines = (self.home / "access.log").read_text(errors="replace").splitlines()
        return max(entry["time"] for entry in map(json.loads, lines) if entry["path"].startswith("/" + below))

    def sent(self, path=None):
        """Bytes of bodies sent in all."""
        return sum(request.sent for request in self.requests(path))

    def coverage(self, path, size):
        """How often each byte of a file was sent: (fewest, most) times."""
        return coverage(self.requests(path), size)


def coverage(requests, size):
    """How often each byte of a file of this size was sent by requests for it: (fewest, most) times."""
    events = []
    for request in requests:
        if request.sent:
            events += [(request.begin, 1), (min(request.end, size), -1)]
    fewest, most, depth, position = None, 0, 0, 0
    for offset, change in sorted(events) + [(size, 0)]:
        if offset > position:
            fewest = depth if fewest is None else min(fewest, depth)
            most = max(most, depth)
            position = offset
        depth += change
    return fewest or 0, most
