#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Loads a model by path as runtimes do, and prints how long that took.

  loader.py FOLDER [--check]

Opens one shard after the other and takes every tensor, with the safetensors library where the interpreter
has it, else by mapping the shard and copying each tensor out. Prints JSON: the seconds, without the start
of the interpreter; the bytes; the library. With --check also a sha256 over the tensors, whose
computation is part of the seconds.
"""

import hashlib
import json
import mmap
import pathlib
import struct
import sys
import time

try:
    from safetensors import safe_open
except ImportError:
    safe_open = None


def by_library(shard):
    with safe_open(shard, framework="numpy") as file:
        for name in file.keys():
            yield memoryview(file.get_tensor(name)).cast("B")


def by_mapping(shard):
    with open(shard, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        length, = struct.unpack_from("<Q", view)
        header = json.loads(view[8:8 + length])
        header.pop("__metadata__", None)
        for name in sorted(header):
            begin, end = header[name]["data_offsets"]
            yield view[8 + length + begin:8 + length + end]


def main(folder, check=None):
    tensors = by_library if safe_open else by_mapping
    digest = hashlib.sha256()
    size = 0
    began = time.monotonic()
    for shard in sorted(pathlib.Path(folder).glob("*.safetensors")):
        for tensor in tensors(shard):
            size += len(tensor)
            if check:
                digest.update(tensor)
    seconds = time.monotonic() - began
    print(json.dumps({"seconds": seconds, "bytes": size, "sha256": digest.hexdigest() if check else None,
                      "library": "safetensors" if safe_open else "mmap"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
