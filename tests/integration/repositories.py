# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Repositories of a model hub as git has them: commits, trees, blobs, and pointers for large files.

Every id is the one that git would compute for the same content, so that clients can verify it.
"""

import dataclasses
import hashlib
import pathlib

LFS_SUFFIXES = (".safetensors", ".bin", ".gguf", ".pt", ".onnx", ".zip", ".parquet")
LFS_BYTES = 10 << 20   # larger files are always kept outside of git
COMMITTED = 1_700_000_000


def git_id(kind, content):
    return hashlib.sha1(b"%b %d\0" % (kind.encode(), len(content)) + content).hexdigest()


class Entry:
    """One file of a commit. `content` is bytes, or a Path that is read when asked for."""

    def __init__(self, content, lfs, xet=False):
        self.content, self.lfs = content, lfs
        if isinstance(content, pathlib.Path):
            self.size = content.stat().st_size
            with open(content, "rb", buffering=0) as file:
                self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            self.size, self.sha256 = len(content), hashlib.sha256(content).hexdigest()
        self.pointer = (f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\n"
                        f"size {self.size}\n").encode() if lfs else None
        self.blob_id = git_id("blob", self.pointer if lfs else self.read())
        # As long as a sha256 and no sha256 of anything that a client could see.
        self.cdn_etag = hashlib.sha256(b"cdn" + self.sha256.encode()).hexdigest()
        self.xet_hash = hashlib.sha256(b"xet" + self.sha256.encode()).hexdigest() if lfs and xet else None

    @property
    def etag(self):
        """What the hub's own ETag of this file says, without quotes."""
        return self.sha256 if self.lfs else self.blob_id

    def read(self, begin=0, end=None):
        end = self.size if end is None else min(end, self.size)
        if isinstance(self.content, pathlib.Path):
            with open(self.content, "rb", buffering=0) as file:
                file.seek(begin)
                data = b""
                while len(data) < end - begin and (piece := file.read(end - begin - len(data))):
                    data += piece
                return data
        return self.content[begin:end]

    def listed(self, path):
        """This file in a tree listing."""
        item = {"type": "file", "oid": self.blob_id, "size": self.size, "path": path}
        if self.lfs:
            item["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": len(self.pointer)}
        if self.xet_hash:
            item["xetHash"] = self.xet_hash
        return item

    def sibling(self, path, blobs):
        """This file in a description of the repository."""
        item = {"rfilename": path}
        if blobs:
            item |= {"size": self.size, "blobId": self.blob_id}
            if self.lfs:
                item["lfs"] = {"sha256": self.sha256, "size": self.size, "pointerSize": len(self.pointer)}
        return item


@dataclasses.dataclass(frozen=True)
class Commit:
    id: str
    files: dict       # path -> Entry
    folders: dict     # path -> id of the tree; the root under ""
    title: str
    time: int

    def listing(self, folder="", recursive=True):
        """The entries below a folder in the order of a tree walk."""
        prefix = folder + "/" if folder else ""
        items = [entry.listed(path) for path, entry in self.files.items() if path.startswith(prefix)]
        items += [{"type": "directory", "oid": tree, "size": 0, "path": path}
                  for path, tree in self.folders.items() if path and path.startswith(prefix)]
        if not recursive:
            items = [item for item in items if "/" not in item["path"][len(prefix):]]
        return sorted(items, key=lambda item: item["path"].encode())


def write_trees(files):
    """{folder: id of its git tree} of these files, the root under ""."""
    children = {"": {}}
    for path, entry in files.items():
        *folders, name = path.split("/")
        for depth in range(len(folders)):
            children.setdefault("/".join(folders[:depth + 1]), {})
        children["/".join(folders)][name] = entry.blob_id
    ids = {}
    for folder in sorted(children, key=lambda path: path.count("/") if path else -1, reverse=True):
        rows = [(name.encode(), b"100644", blob) for name, blob in children[folder].items()]
        rows += [(path.rsplit("/", 1)[-1].encode(), b"40000", tree) for path, tree in ids.items()
                 if path.rpartition("/")[0] == folder]
        # git sorts a folder as if its name ended with a slash.
        rows.sort(key=lambda row: row[0] + (b"/" if row[1] == b"40000" else b""))
        ids[folder] = git_id("tree", b"".join(b"%b %b\0%b" % (mode, name, bytes.fromhex(oid))
                                              for name, mode, oid in rows))
    return ids


class Repository:
    """A repository with its commits; each commit states the whole content.

    kind:     "model", "dataset" or "space"
    lfs:      which paths are kept outside of git: a function path, content -> bool; by default what hubs do
    gated:    False, "auto" or "manual": everyone may list it, `readers` may read it
    private:  only `readers` know that it exists
    disabled: nobody may read it
    readers:  names of the users that may read it
    xet:      announces another protocol beside HTTP for large files
    shapes:   {path: "cdn" | "cache" | "direct"}: how a file is answered, where not as usual
    """

    def __init__(self, name, files, kind="model", *, lfs=None, gated=False, private=False, disabled=False,
                 readers=(), xet=False):
        self.name, self.kind, self.gated, self.private, self.disabled = name, kind, gated, private, disabled
        self.readers, self.xet, self._lfs = set(readers), xet, lfs or self.usual_lfs
        self.commits, self.refs, self.shapes = {}, {}, {}
        self.commit(files)

    @staticmethod
    def usual_lfs(path, content):
        size = content.stat().st_size if isinstance(content, pathlib.Path) else len(content)
        return size > LFS_BYTES or (size > 0 and path.endswith(LFS_SUFFIXES))

    def commit(self, files, ref="main", title="Upload files"):
        """Makes a commit on top of a branch (or another ref, as in "refs/pr/1") and moves it; returns its id."""
        entries = {path: Entry(content, self._lfs(path, content), self.xet)
                   for path, content in files.items()}
        trees = write_trees(entries)
        parent, time = self.refs.get(ref), COMMITTED + 60 * len(self.commits)
        who = f"weightfs tests <tests@localhost> {time} +0000"
        text = f"tree {trees['']}\n" + (f"parent {parent}\n" if parent else "")
        text += f"author {who}\ncommitter {who}\n\n{self.name}: {title}\n"
        commit = Commit(git_id("commit", text.encode()), entries, trees, title, time)
        self.commits[commit.id] = commit
        self.refs[ref] = commit.id
        return commit.id

    def at(self, revision):
        """The commit that a branch, a tag, another ref or an id names; None where there is none."""
        return self.commits.get(self.refs.get(revision, revision))

    @property
    def head(self):
        return self.commits[self.refs["main"]]

    def shape(self, path, entry):
        """How a hub answers for this file: "cdn" (302 elsewhere), "cache" (307 on the hub), "direct" (200)."""
        if path in self.shapes:
            return self.shapes[path]
        if entry.lfs:
            return "cdn"
        return "direct" if self.private or self.gated or "/" not in self.name or not entry.size else "cache"

    def may_read(self, user):
        return user in self.readers or not (self.private or self.gated)

    def may_see(self, user):
        return user in self.readers or not self.private
