# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Makes safetensors models: the same bytes for the same seed, on every machine.

A model is a folder as a hub would serve it: numbered shards, their index, the configuration and the
tokenizer, a file in a folder of its own, and beside them weightfs.json, which describes them.
"""

import base64
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import shutil
import struct

MTIME = 1_700_000_000
CHUNK = 4 << 20


@dataclasses.dataclass(frozen=True)
class File:
    size: int
    sha256: str
    mtime: int = MTIME
    executable: bool = False


@dataclasses.dataclass(frozen=True)
class Model:
    """A model in a plain directory: what every read through a mount is compared with."""
    folder: pathlib.Path
    files: dict  # relative path -> File

    @property
    def size(self):
        return sum(file.size for file in self.files.values())

    @property
    def shards(self):
        return sorted(name for name in self.files if name.endswith(".safetensors"))

    def path(self, name):
        return self.folder / name

    def data(self, name):
        return self.path(name).read_bytes()


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def noise(seed, length):
    """Yields `length` bytes in chunks: one random chunk, rotated by an odd number of bytes each time,
    so that no two places hold the same bytes. Much faster than as many random bytes."""
    base = random.Random(seed).randbytes(CHUNK)
    number = 0
    while length > 0:
        turn = number * 69_997 % CHUNK
        yield (base[turn:] + base[:turn])[:length]
        length -= CHUNK
        number += 1


def write_safetensors(path, tensors, seed):
    """Writes a shard of random F16 tensors: `tensors` is {name: (rows, columns)}."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        length = 2 * shape[0] * shape[1]
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [offset, offset + length]}
        offset += length
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for chunk in noise(f"{seed}/{path.name}", offset):
            file.write(chunk)


def write_shards(folder, count, shard_bytes, seed):
    """Returns the index: which tensor lies in which shard."""
    columns = 1024
    rows = min(4096, shard_bytes // (2 * columns) // 4)
    per_shard = max(1, shard_bytes // (2 * columns * rows))
    weight_map = {}
    for shard in range(count):
        name = f"model-{shard + 1:05}-of-{count:05}.safetensors"
        tensors = {f"model.layers.{shard * per_shard + i}.mlp.weight": (rows, columns)
                   for i in range(per_shard)}
        write_safetensors(folder / name, tensors, seed)
        weight_map.update(dict.fromkeys(tensors, name))
    return weight_map


def write_model(folder, shards, shard_bytes, seed):
    folder.mkdir(parents=True)
    weight_map = write_shards(folder, shards, shard_bytes, seed)
    index = {"metadata": {"total_size": shards * shard_bytes}, "weight_map": weight_map}
    config = {"architectures": ["MadeUpForCausalLM"], "hidden_size": 1024, "torch_dtype": "float16"}
    source = random.Random(f"{seed}/tokenizer")
    vocabulary = {f"tok{source.randrange(1 << 30)}": i for i in range(2000)}
    texts = {
        "model.safetensors.index.json": json.dumps(index, indent=1),
        "config.json": json.dumps(config, indent=1),
        "generation_config.json": json.dumps({"do_sample": True, "seed": seed}),
        "tokenizer.json": json.dumps({"model": {"type": "BPE", "vocab": vocabulary}}),
        "tokenizer_config.json": json.dumps({"model_max_length": 8192}),
        "README.md": f"# Made up, seed {seed}\n",
        "1_Pooling/config.json": json.dumps({"pooling_mode_mean_tokens": True}),
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return describe(folder)


def describe(folder):
    """Sets every file's mtime, writes weightfs.json and returns the Model."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "weightfs.json":
            os.utime(path, (MTIME, MTIME))
            name = str(path.relative_to(folder))
            executable = bool(path.stat().st_mode & 0o100)
            files[name] = File(path.stat().st_size, sha256(path), MTIME, executable)
    (folder / "weightfs.json").write_text(manifest(files))
    return Model(folder, files)


def listing(contents):
    """{path: bytes} as {path: File}."""
    return {name: File(len(data), hashlib.sha256(data).hexdigest()) for name, data in contents.items()}


def served(prefix, contents):
    """What an origin serves for a model of these contents: {URL path: bytes}, weightfs.json included."""
    return ({f"{prefix}/{name}": data for name, data in contents.items()} |
            {f"{prefix}/weightfs.json": manifest(listing(contents)).encode()})


def manifest(files):
    """The text of weightfs.json. A path that is not UTF-8 is given in base64."""
    entries = []
    for name, file in files.items():
        raw = os.fsencode(name)
        try:
            entry = {"path": raw.decode()}
        except UnicodeDecodeError:
            entry = {"path_base64": base64.b64encode(raw).decode()}
        entry |= {"size": file.size, "sha256": file.sha256, "mtime": file.mtime}
        if file.executable:
            entry["executable"] = True
        entries.append(entry)
    return json.dumps({"files": entries})


def checksum_line(digest, name):
    """As sha256sum prints it: a name with a backslash or a line feed is escaped, and so marked."""
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    mark = "\\" if escaped != name else ""
    return f"{mark}{digest}  {escaped}\n"


def write_checksums(model):
    """Replaces weightfs.json by what sha256sum would print."""
    (model.folder / "weightfs.json").unlink(missing_ok=True)
    text = "".join(checksum_line(file.sha256, name) for name, file in model.files.items())
    (model.folder / "SHA256SUMS").write_text(text)


def cached(folder, shards, shard_bytes, seed):
    """The model of write_model, made once and kept in `folder` for later runs."""
    note = folder.with_name(folder.name + ".made")
    wanted = f"{shards} {shard_bytes} {seed}"
    if not note.exists() or note.read_text().splitlines()[0] != wanted:
        note.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        write_model(folder, shards, shard_bytes, seed)
        note.write_text(wanted + "\n")
    files = {entry["path"]: File(entry["size"], entry["sha256"], entry["mtime"])
             for entry in json.loads((folder / "weightfs.json").read_text())["files"]}
    return Model(folder, files)


def copy(model, folder):
    """A copy that a test may change."""
    shutil.copytree(model.folder, folder)
    return describe(folder)
