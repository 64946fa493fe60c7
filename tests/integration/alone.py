# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The suite may run in several processes, which share what is made once."""

import contextlib
import fcntl


@contextlib.contextmanager
def alone(folder):
    """One process at a time."""
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
