# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Looking at and ending processes by pid."""

import os
import signal

from waiting import until


def is_running(pid):
    """False for a pid that is free or a zombie nobody has waited for yet."""
    return state(pid) not in (None, "Z", "X")


def state(pid):
    """The state letter of /proc/PID/stat ("D": uninterruptible), None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def kill(pid, number=signal.SIGKILL):
    """True if the process was there to get the signal."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def wait_gone(pid, seconds, what):
    until(lambda: not is_running(pid), seconds, f"{what} (pid {pid}) ends")


def status_field(pid, name):
    """A field of /proc/PID/status: kilobytes as an int where it has them, else the text."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(name + ":"):
                value = line.split(":", 1)[1].strip()
                return int(value.split()[0]) if value.endswith(" kB") else value
    raise KeyError(name)
