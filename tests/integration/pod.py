# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A consumer as Kubernetes would run it, without Kubernetes.

Its own mount, pid and cgroup namespaces, a cgroup of its own where the machine lets us make one, uid 1000
without groups or capabilities, and the parent of the mount bound in as rslave (mountPropagation:
HostToContainer). It runs consumer.py and does one thing after another as it is told.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

import mounts

# Handed over as text: uid 1000 may not be able to reach the source tree.
CONSUMER = pathlib.Path(__file__).with_name("consumer.py")

# In the new namespaces: bind the host's folder where the pod sees it, then give up all privileges.
ENTER = """
set -e
mount --rbind "$1" "$2"
mount --make-rslave "$2"
mount -t proc proc /proc
shift 2
exec setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs "$@"
"""


def own_cgroup(name):
    """A new cgroup below the unified hierarchy, or None where that cannot be had."""
    for row in mounts.table():
        if row["kind"] == "cgroup2":
            path = pathlib.Path(row["point"]) / name
            with contextlib.suppress(OSError):
                path.mkdir(exist_ok=True)
                return path
    return None


class Pod:
    """`shared` is the host's folder, `inside` where the pod has it. Use as a context."""

    def __init__(self, shared, inside):
        self.inside = pathlib.Path(inside)
        self.inside.mkdir()
        self.cgroup = own_cgroup(f"weightfs-pod-{os.getpid()}-{id(self)}")
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "slave", "--pid", "--cgroup", "--fork", "--kill-child",
             "bash", "-c", ENTER, "enter", str(shared), str(inside), sys.executable, "-c", CONSUMER.read_text()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=self._join)

    def _join(self):
        if self.cgroup is not None:
            with contextlib.suppress(OSError):
                (self.cgroup / "cgroup.procs").write_text("0")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        if self.cgroup is not None:
            with contextlib.suppress(OSError):
                self.cgroup.rmdir()

    def send(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        assert line, f"the pod ended with {self.process.poll()}"
        return json.loads(line)

    def ask(self, **command):
        self.send(**command)
        return self.receive()
