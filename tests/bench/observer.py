# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""What processes cost: CPU seconds and anonymous memory, from /proc."""

import os
import threading

from processes import status_field

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system time of a process and of the children that it has waited for."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / TICKS


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


class Observer:
    """Follows processes for the length of a with block; `cpu` and `peak_anonymous` are right after it.

    The anonymous memory of the first is looked at every few milliseconds, as the kernel keeps no peak of it.
    """

    INTERVAL = 0.02

    def __init__(self, **pids):
        self._pids = pids
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(next(iter(pids.values())),), daemon=True)
        self.peak_anonymous = self.peak_resident = 0
        self.cpu = {}

    def __enter__(self):
        self._before = {name: cpu_seconds(pid) for name, pid in self._pids.items()}
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()
        self.cpu = {name: cpu_seconds(pid) - self._before[name] for name, pid in self._pids.items()}
        self.peak_resident = status_field(next(iter(self._pids.values())), "VmHWM") * 1024

    def _follow(self, pid):
        while True:
            self.peak_anonymous = max(self.peak_anonymous, status_field(pid, "RssAnon") * 1024)
            if self._stopped.wait(self.INTERVAL):
                return
