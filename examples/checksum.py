#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Loads every tensor of a safetensors model by path, with nothing but Python's own library.

  checksum.py FOLDER

Maps one shard after the other and copies each tensor out of the mapping, as loaders do. Prints one line of
tab-separated fields: the seconds that loading took, the bytes of the tensors, a sha256 over all of them, and
a remark.
"""

import hashlib
import json
import mmap
import pathlib
import struct
import sys
import time


def load(shard):
    """Yields (name, bytes) in the order of the file."""
    with open(shard, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        length, = struct.unpack_from("<Q", view)
        header = json.loads(view[8:8 + length])
        header.pop("__metadata__", None)
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            begin, end = entry["data_offsets"]
            yield name, view[8 + length + begin:8 + length + end]


def main(folder):
    shards = sorted(pathlib.Path(folder).glob("*.safetensors"))
    began = time.monotonic()
    tensors = [tensor for shard in shards for tensor in load(shard)]
    seconds = time.monotonic() - began

    digest = hashlib.sha256()
    for name, data in tensors:
        digest.update(name.encode() + data)
    print(f"{seconds:.3f}", sum(len(data) for _, data in tensors), digest.hexdigest(),
          f"{len(tensors)} tensors of {len(shards)} shards", sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
