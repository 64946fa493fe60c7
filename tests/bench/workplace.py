# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Where the benchmark's files are, and the programs that it runs."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import daemon
import mounts

HERE = pathlib.Path(__file__).parent


class Failed(Exception):
    """The benchmark could not measure; the text says why."""


def everyone_may_enter(folder):
    return all(path.stat().st_mode & 0o001 for path in [folder, *folder.parents])


class Workplace:
    """A folder on a real disk that the unprivileged daemon can enter.

    `kept` stays for later runs (the model, the libraries); `run` is removed at the end, and whatever is
    mounted below it with it.
    """

    def __init__(self):
        base = daemon.BUILD / "bench"
        base.mkdir(exist_ok=True)
        base = base.resolve()
        if not everyone_may_enter(base):
            base = pathlib.Path("/var/tmp/weightfs-bench")
            base.mkdir(exist_ok=True)
            base.chmod(0o755)
            shutil.copy2(daemon.binary(), base / "weightfs")
            (base / "weightfs").chmod(0o755)
            os.environ["WEIGHTFS_BINARY"] = str(base / "weightfs")
        self.kept = base / "kept"
        self.kept.mkdir(exist_ok=True)
        self.run = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=base))
        self.run.chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        mounts.detach_below(self.run)
        shutil.rmtree(self.run, ignore_errors=True)

    def fresh(self, name):
        """An empty folder; what was there under this name before is removed."""
        path = self.run / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def reader(self):
        """The compiled reader.cpp."""
        program = self.run / "reader"
        subprocess.run(["c++", "-O2", "-std=c++20", "-o", str(program), str(HERE / "reader.cpp")], check=True)
        return program

    def python(self, install):
        """An interpreter with safetensors and numpy, if it could be had, else the system's."""
        folder = self.kept / "venv"
        ready = folder / "ready"
        if install and not ready.exists():
            make = [sys.executable, "-m", "venv", "--clear", str(folder)]
            fill = [str(folder / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check",
                    "--retries", "1", "--timeout", "20", "numpy", "safetensors"]
            if all(subprocess.run(command, stdin=subprocess.DEVNULL).returncode == 0
                   for command in (make, fill)):
                ready.touch()
        return folder / "bin/python" if ready.exists() else pathlib.Path(sys.executable)


def files_below(folder):
    return [path for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()]
