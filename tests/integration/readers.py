# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Reading through a mount: in this process, and by many others at once (reader.py)."""

import contextlib
import json
import mmap
import os
import pathlib
import subprocess
import sys

import waiting

READER = pathlib.Path(__file__).with_name("reader.py")
BLOCK = 4096


def same_tree(mounted, model, names=None):
    """Compares whole files with the plain model."""
    for name in names or model.files:
        assert same_file(os.path.join(mounted, name), model.path(name)), f"{name} differs"


def same_file(left, right):
    with open(left, "rb", buffering=0) as one, open(right, "rb", buffering=0) as two:
        while True:
            a, b = read_fully(one, 1 << 20), read_fully(two, 1 << 20)
            if a != b:
                return False
            if not a:
                return True


def read_fully(file, length):
    parts = []
    while length > 0 and (piece := file.read(length)):
        parts.append(piece)
        length -= len(piece)
    return b"".join(parts)


def read_at(path, offset, length, flags=0):
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        return pread_all(descriptor, offset, length)
    finally:
        os.close(descriptor)


def pread_all(descriptor, offset, length):
    """All of it, or to the end of the file: a read that meets an error behind its first bytes returns
    those, and the error comes with the next."""
    data = b""
    while len(data) < length:
        part = os.pread(descriptor, length - len(data), offset + len(data))
        if not part:
            break
        data += part
    return data


def read_direct(path, offset, length):
    """O_DIRECT into an aligned buffer; all three numbers are multiples of the block size."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, length) as buffer:
            count = os.preadv(descriptor, [buffer], offset)
            return buffer[:count]
    finally:
        os.close(descriptor)


def error_of(action, *arguments):
    """The errno that a call ends with, None where it succeeds."""
    try:
        action(*arguments)
    except OSError as error:
        return error.errno
    return None


class Readers:
    """Reader processes with one verdict. Use as a context: whatever still runs is killed at the end."""

    def __init__(self, mounted, plain, names, modes, count=None, until=None):
        limit = ["--count", str(count)] if count is not None else ["--until", str(until)]
        self.until = until
        self.mounted, self.names = pathlib.Path(mounted), names
        self.processes = [
            subprocess.Popen([sys.executable, str(READER), mode, str(mounted), str(plain), str(seed),
                              *limit, *names], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for seed, mode in enumerate(modes)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def wait_all_open(self, seconds=60):
        """Until every process has all of its files open: from then on all of them read."""
        def all_open():
            return all(self._files_of(process.pid) >= {self.mounted / name for name in self.names}
                       for process in self.processes)
        waiting.until(all_open, seconds, "every reader has opened its files")

    @staticmethod
    def _files_of(pid):
        found = set()
        for entry in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(FileNotFoundError):
                found.add(entry.readlink())
        return found

    def failed(self):
        """Those that have ended badly so far."""
        return [process for process in self.processes if process.poll() not in (None, 0)]

    def finish(self, seconds, mounts=()):
        """Tells them to stop (with `until`), waits for all; returns what they counted. They have
        `seconds` from when something last moved: a reader ended, or one of `mounts` (Weightfs) fetched
        or served something. A read at the end of a file waits for all of it, however long that takes."""
        if self.until:
            pathlib.Path(self.until).touch()

        def running():
            return [process.pid for process in self.processes if process.poll() is None]
        waiting.until_still(lambda: not running(), seconds,
                            lambda: (running(), [mounted.progress() for mounted in mounts]))
        results, wrong = [], []
        for process in self.processes:
            late = process.poll() is None
            if late:
                process.kill()
            output, errors = process.communicate()
            if late:
                wrong.append(f"still reading, and nothing moved for {seconds} s")
            elif process.returncode == 0:
                results.append(json.loads(output))
            else:
                wrong.append(f"exit {process.returncode}: {errors.strip()}")
        assert not wrong, (f"{len(wrong)} of {len(self.processes)} readers failed: " +
                           "; ".join(wrong[:5]) + "".join(f"\n{mounted.progress()}" for mounted in mounts))
        return results
