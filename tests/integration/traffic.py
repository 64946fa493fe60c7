# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Traffic for a running daemon: who loads what in which order, each load by a process of its own."""

import csv
import gzip
import http.client
import json
import os
import random
import socket
import subprocess

import pod
from waiting import until

READ = 'dd if="$1" iflag=nocache bs=256k status=none | sha256sum'


def made_up(loads, artifacts, users, seed):
    """Like serving traffic: few artifacts are asked for much, users have favourites and come in bursts."""
    chance = random.Random(seed)
    popularity = [1 / (rank + 1) ** 1.3 for rank in range(artifacts)]
    favourites = {}
    rows, user = [], 0
    for _ in range(loads):
        if chance.random() < 0.4:
            user = chance.randrange(users)
        own = favourites.setdefault(user, [chance.choices(range(artifacts), popularity)[0]])
        if chance.random() < 0.12:
            own.append(chance.choices(range(artifacts), popularity)[0])
        rows.append((f"user-{user}", f"artifact-{chance.choice(own)}"))
    return rows


def recorded(path, loads):
    """The first `loads` of a recorded trace with the columns user and artifact."""
    with gzip.open(path, "rt", newline="") as lines:
        return [(row["user"], row["artifact"]) for row, _ in zip(csv.DictReader(lines), range(loads))]


def write_trace(rows, path):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "consumer", "artifact"])
        writer.writerows((second, user, artifact) for second, (user, artifact) in enumerate(rows))


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("weightfs", timeout=60)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def status(mounted):
    """As `weightfs status --json`, without a process for each."""
    connection = _UnixConnection(mounted.socket)
    try:
        connection.request("GET", "/v1/status")
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def load(mounted, user, name, expected):
    """One consumer reads a file of a model to its end. Its cgroup goes by its name, so it is the same
    one when it comes again. Returns the status when all is quiet again. Its pages are dropped: of a
    model as large as real ones few would be left when it is read again."""
    cgroup = pod.own_cgroup(f"weightfs-traffic-{os.getpid()}-{user}")
    assert cgroup is not None, "needs a cgroup of its own for each consumer"

    def join():
        (cgroup / "cgroup.procs").write_text("0")
    done = subprocess.run(["sh", "-c", READ, "read", str(mounted.mount / name)], check=True, timeout=60, capture_output=True,
                          text=True, start_new_session=True, preexec_fn=join)
    cgroup.rmdir()
    assert done.stdout.split()[0] == expected, f"{name}: wrong bytes"

    def quiet():
        now = status(mounted)
        return now if now["fuse"]["open_files"] == 0 and not now["fills"] else None
    return until(quiet, 30, "its files are closed, and what was fetched is complete or given up", interval=0.002)


def drive(mounted, rows, expected):
    """Every row by a process of its own. `expected`: path below the mount and sha256 by artifact. Returns
    for each row whether it found all that it read, and the last status."""
    found, before = [], status(mounted)
    for user, artifact in rows:
        after = load(mounted, user, *expected[artifact])
        found.append(after["cache"]["misses"] == before["cache"]["misses"])
        before = after
    return found, before


def repeated(rows):
    """Which rows are of a consumer that comes back to an artifact that it had before."""
    seen, flags = set(), []
    for row in rows:
        flags.append(row in seen)
        seen.add(row)
    return flags
