# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The control API of a daemon, as a scheduler speaks it: HTTP and JSON over the unix socket."""

import http.client
import json
import socket


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("weightfs", timeout=30)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path, method, target, body=None):
    """Returns (status, the JSON of the answer)."""
    connection = Connection(path)
    try:
        connection.request(method, target, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()
