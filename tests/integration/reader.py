#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Reads files at random places and compares every byte with a plain copy. One of many processes.

  reader.py MODE MOUNTED PLAIN SEED (--count N | --until FILE) NAME...

MODE is pread, mmap, mixed or reopen (a new open for each read). Ends after N reads, or once FILE exists;
prints {"reads", "bytes", "slowest"} and exits 0, or says what was wrong and exits 1.
"""

import argparse
import json
import mmap
import os
import random
import sys
import time

LARGEST = 256 << 10


class Subject:
    """One file, open both ways."""

    def __init__(self, mounted, plain, mode):
        self.name, self.mode = mounted, mode
        self.plain = os.open(plain, os.O_RDONLY)
        self.size = os.fstat(self.plain).st_size
        self.mounted = os.open(mounted, os.O_RDONLY)
        if os.fstat(self.mounted).st_size != self.size:
            sys.exit(f"{mounted}: size is {os.fstat(self.mounted).st_size}, not {self.size}")
        self.map = None
        if mode == "mmap":
            self.map = mmap.mmap(self.mounted, self.size, mmap.MAP_SHARED, mmap.PROT_READ)

    def read(self, offset, length):
        if self.map is not None:
            return self.map[offset:offset + length]
        if self.mode == "reopen":
            os.close(self.mounted)
            self.mounted = os.open(self.name, os.O_RDONLY)
        data = b""
        while len(data) < length:
            piece = os.pread(self.mounted, length - len(data), offset + len(data))
            if not piece:
                sys.exit(f"{self.name}: ends at {offset + len(data)}")
            data += piece
        return data

    def check(self, offset, length):
        expected = os.pread(self.plain, length, offset)
        data = self.read(offset, length)
        if data != expected:
            at = next(i for i in range(length) if data[i] != expected[i])
            sys.exit(f"{self.name}: wrong byte at {offset + at} ({self.mode} of {length} at {offset})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["pread", "mmap", "mixed", "reopen"])
    parser.add_argument("mounted")
    parser.add_argument("plain")
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=1 << 62)
    parser.add_argument("--until")
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    source = random.Random(options.seed)
    modes = ["pread", "mmap", "reopen"] if options.mode == "mixed" else [options.mode]
    subjects = [Subject(os.path.join(options.mounted, name), os.path.join(options.plain, name),
                        modes[(options.seed + i) % len(modes)])
                for i, name in enumerate(options.names)]
    reads = total = 0
    slowest = 0.0
    while reads < options.count and not (options.until and os.path.exists(options.until)):
        subject = source.choice(subjects)
        length = min(subject.size, source.randint(1, LARGEST))
        offset = source.randint(0, subject.size - length)
        began = time.monotonic()
        try:
            subject.check(offset, length)
        except OSError as error:
            sys.exit(f"{subject.name}: {error} ({subject.mode} of {length} at {offset})")
        slowest = max(slowest, time.monotonic() - began)
        reads += 1
        total += length
    print(json.dumps({"reads": reads, "bytes": total, "slowest": slowest}))


if __name__ == "__main__":
    main()
