# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Traces: generated ones, in every format, and where the real ones are."""

import collections
import csv
import gzip
import json
import os
import pathlib
import random
import struct

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

Reference = collections.namedtuple("Reference", "artifact consumer size")


def real(name):
    """The path of a real trace. Their data has no licence for redistribution, so it is read from where
    it lies: the folder WEIGHTFS_TRACES, else shared/traces beside the source tree."""
    folder = os.environ.get("WEIGHTFS_TRACES") or ROOT.parent / "shared" / "traces"
    path = pathlib.Path(folder) / name
    if not path.is_file():
        pytest.skip(f"{name} is not here: set WEIGHTFS_TRACES to the folder that has it")
    return path


def rows(path):
    with gzip.open(path, "rt", newline="") as text:
        yield from csv.DictReader(text)


def zipf_weights(artifacts, exponent=1.0):
    return [1 / rank ** exponent for rank in range(1, artifacts + 1)]


def zipf(length, artifacts, consumers=40, seed=1):
    """Independent references by Zipf's law; each artifact has a size of its own."""
    draw = random.Random(seed)
    sizes = [draw.randint(1, 100) * 1000 for _ in range(artifacts)]
    drawn = draw.choices(range(artifacts), zipf_weights(artifacts), k=length)
    return [Reference(number, int(draw.expovariate(4 / consumers)), sizes[number]) for number in drawn]


def write_csv(path, references):
    with open(path, "w") as out:
        out.write("ts_s,user,artifact,size\n")
        for place, (artifact, consumer, size) in enumerate(references):
            out.write(f"{place},u{consumer},a{artifact},{size}\n")
    return path


def write_events(path, references):
    with open(path, "w") as out:
        for place, (artifact, consumer, size) in enumerate(references):
            out.write(json.dumps({"time": place, "event": "reference", "snapshot": f"{artifact:012x}",
                                  "consumer": f"pod {consumer}", "bytes": size}) + "\n")
            # What a load finds is told of each file, and no reference of its own.
            out.write(json.dumps({"time": place, "event": "hit" if place % 2 else "miss",
                                  "snapshot": f"{artifact:012x}", "bytes": 1}) + "\n")
            if place % 10 == 0:
                out.write(json.dumps({"time": place, "event": "eviction", "bytes": 1}) + "\n")
    return path


def write_oracle(path, references):
    with open(path, "wb") as out:
        for place, (artifact, _, size) in enumerate(references):
            out.write(struct.pack("<IQIq", place, artifact, size, -1))
    return path


def compress(path):
    packed = path.with_suffix(path.suffix + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes(), 1))
    return packed
