#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Loads a model by path with the safetensors library, as runtimes do, and prints what it got.

  load_tensors.py FOLDER

Takes the shards from the index, opens each with safe_open, takes every tensor; prints JSON: the time, the
number of tensors and one sha256 over all their names and bytes. Run by an interpreter that has the
library.
"""

import hashlib
import json
import pathlib
import sys
import time

import safetensors


def main(folder):
    folder = pathlib.Path(folder)
    began = time.monotonic()
    index = folder / "model.safetensors.index.json"
    if index.exists():
        shards = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    else:
        shards = sorted(path.name for path in folder.glob("*.safetensors"))
    tensors = size = 0
    digest = hashlib.sha256()
    for shard in shards:
        with safetensors.safe_open(folder / shard, framework="numpy") as file:
            for name in file.keys():
                tensor = file.get_tensor(name)
                digest.update(name.encode())
                digest.update(memoryview(tensor).cast("B"))
                tensors += 1
                size += tensor.nbytes
    print(json.dumps({"seconds": round(time.monotonic() - began, 3), "tensors": tensors, "bytes": size,
                      "sha256": digest.hexdigest()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
