#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Makes calls of the hub's own client library and prints what came of them.

  hub_client.py < CALLS

CALLS is JSON: [[name, {argument: value}], ...]. Prints a JSON list of {"value": ...} or
{"error": [class, ...], "errno": N, "text": ...}, where the classes are those of the error and of what caused it.
Run by an interpreter that has the library.
"""

import dataclasses
import hashlib
import json
import os
import sys

import huggingface_hub


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def digests(folder):
    """{path: sha256} of every file below a folder."""
    return {os.path.relpath(os.path.join(root, name), folder): sha256(os.path.join(root, name))
            for root, _, names in os.walk(folder) for name in names}


def snapshot(**arguments):
    """snapshot_download, and what the folder then holds."""
    folder = huggingface_hub.snapshot_download(**arguments)
    return {"folder": folder, "files": digests(folder)}


def file(**arguments):
    """hf_hub_download, and what the file then holds."""
    path = huggingface_hub.hf_hub_download(**arguments)
    return {"path": path, "sha256": sha256(path)}


def tree(**arguments):
    """list_repo_tree: {path: size of a file, None for a folder}."""
    items = huggingface_hub.HfApi().list_repo_tree(recursive=True, **arguments)
    return {item.path: getattr(item, "size", None) for item in items}


def info(**arguments):
    found = huggingface_hub.HfApi().repo_info(**arguments)
    return {"sha": found.sha, "files": {item.rfilename: item.size for item in found.siblings}}


def paths(**arguments):
    """get_paths_info: {path: id of the blob, or of a folder's tree}."""
    items = huggingface_hub.HfApi().get_paths_info(**arguments)
    return {item.path: getattr(item, "blob_id", None) or item.tree_id for item in items}


def cached(**arguments):
    """try_to_load_from_cache: the path, None, or "no" where it is known not to exist."""
    found = huggingface_hub.try_to_load_from_cache(**arguments)
    return found if found is None or isinstance(found, str) else "no"


def scan(**arguments):
    """scan_cache_dir: the revisions and sizes of each repository, and what it found corrupted."""
    found = huggingface_hub.scan_cache_dir(**arguments)
    return {"size": found.size_on_disk, "warnings": [str(warning) for warning in found.warnings],
            "repositories": {
                f"{one.repo_type}/{one.repo_id}": {
                    "size": one.size_on_disk, "files": one.nb_files,
                    "revisions": {revision.commit_hash: sorted(revision.refs) for revision in one.revisions}}
                for one in found.repos}}


def version():
    return huggingface_hub.__version__


CALLS = {call.__name__: call for call in (snapshot, file, tree, info, paths, cached, scan, version)}


def failure(error):
    classes, number = [], None
    while error is not None:
        classes.append(type(error).__name__)
        number = number or getattr(error, "errno", None)
        text, error = str(error), error.__cause__ or error.__context__
        last = text
    return {"error": classes, "errno": number, "text": last[-400:]}


def made(name, arguments):
    try:
        return {"value": CALLS[name](**arguments)}
    except Exception as error:
        return failure(error)


if __name__ == "__main__":
    json.dump([made(*call) for call in json.load(sys.stdin)], sys.stdout,
              default=lambda value: dataclasses.asdict(value) if dataclasses.is_dataclass(value) else str(value))
