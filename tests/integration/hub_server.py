# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""An independent server of the hub's protocol, olah, from its package registry, on loopback.

It either serves git repositories below a folder and asks nobody, or is a caching mirror in front of a Hub.
Over git repositories it differs from the public hub: it sends large files itself; it takes no account of
ranges; a whole body comes in chunks, without a length; entity tags have no quotes; only revisions without a
slash are found; a repository is described at a revision alone; a file that is not there is an error 500.
As a mirror it serves ranges, but finds no file whose name needs more than spaces and letters encoded.
"""

import pathlib
import socket
import subprocess

from hub_clients import FOLDER
from origin import free_port
from repositories import Entry, Repository
from waiting import until

CONFIG = """
[basic]
host = "127.0.0.1"
port = {port}
repos-path = "{home}/kept"
mirrors-path = ["{home}/repositories"]
hf-scheme = "http"
hf-netloc = "{hub}"
hf-lfs-netloc = "{cdn}"
metadata-cache-ttl = {ttl}
[accessibility]
offline = {offline}
"""


class Olah:
    """hub: the Hub to stand in front of; without one, only what add() made is served.
    ttl: seconds for which it believes what it knows of a branch of that hub."""

    def __init__(self, home, hub=None, ttl=600):
        self.home, self.port, self.process = pathlib.Path(home), free_port(), None
        self.program = FOLDER / "olah/bin/olah-cli"
        assert self.program.exists(), "no olah: run packaging/deps.sh hub"
        self.home.mkdir(parents=True, exist_ok=True)
        addresses = [url.split("//")[1] for url in (hub.endpoint, hub.cdn)] if hub else ["127.0.0.1:9"] * 2
        self.config = self.home / "olah.toml"
        self.config.write_text(CONFIG.format(port=self.port, home=self.home, hub=addresses[0], cdn=addresses[1],
                                             ttl=ttl, offline="false" if hub else "true"))

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def add(self, name, files, kind="model"):
        """Makes a git repository with one commit, large files beside it as git-lfs keeps them; returns the
        id of the commit. Once more for the same name: another commit."""
        folder = self.home / "repositories" / (kind + "s") / name
        if not folder.exists():
            folder.mkdir(parents=True)
            self._git(folder, "init", "-q", "-b", "main", ".")
        for path, content in files.items():
            entry = Entry(content, Repository.usual_lfs(path, content))
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(entry.pointer or entry.read())
            if entry.lfs:
                kept = folder / ".git/lfs/objects" / entry.sha256[:2] / entry.sha256[2:4] / entry.sha256
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(entry.read())
        self._git(folder, "add", "-A")
        self._git(folder, "commit", "-q", "-m", "Upload files")
        return self._git(folder, "rev-parse", "HEAD").strip()

    def _git(self, folder, *arguments):
        # Whatever the machine's git is set up to do with attributes, names and hooks.
        return subprocess.run(["git", "-c", "user.name=weightfs tests", "-c", "user.email=tests@localhost",
                               "-c", "core.hooksPath=/dev/null", "-c", "filter.lfs.required=false",
                               "-c", "filter.lfs.clean=cat", "-c", "filter.lfs.process=", *arguments],
                              cwd=folder, check=True, capture_output=True, text=True).stdout

    def __enter__(self):
        log = open(self.home / "olah.log", "ab")
        # Nothing of this machine's proxies and tokens.
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen([str(self.program), "-c", str(self.config), "--log-path",
                                         str(self.home / "logs")], cwd=self.home, stdin=subprocess.DEVNULL,
                                        stdout=log, stderr=log, env=environment)
        until(self._listens, 60, "olah listens")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def _listens(self):
        assert self.process.poll() is None, (self.home / "olah.log").read_text()[-4000:]
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
