# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A mounted weightfs, started and taken down by its own command line."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import mounts
import processes
from waiting import Deadline, until

READY_SECONDS = 30
STOP_SECONDS = 20

# What a log must never hold: reports of sanitizers and of dying processes.
ALARMS = re.compile(r"ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error:|"
                    r"terminate called|Segmentation fault|Assertion .* failed|core dumped")

# How fast a model is warmed is no matter of what else reads the machine's disk, unless a test says so
# (GIVES_WAY).
QUIET = {"WEIGHTFS_YIELD_TO_READERS": "false"}
GIVES_WAY = {"WEIGHTFS_YIELD_TO_READERS": "true"}

BUILD = pathlib.Path(os.environ.get("WEIGHTFS_BUILD", pathlib.Path(__file__).parents[2] / "build"))


def binary():
    return pathlib.Path(os.environ.get("WEIGHTFS_BINARY", BUILD / "weightfs"))


class StartError(AssertionError):
    """weightfs ended instead of mounting: its exit status and what it said."""

    def __init__(self, code, text):
        super().__init__(f"weightfs mount exited with {code}: {text.strip()}")
        self.code, self.text = code, text


class Weightfs:
    """One keeper and one daemon with a store, a state, a mount point and a socket of their own.

    `models` is {name: source}. start() returns once `status` answers; stop() unmounts by SIGTERM and
    checks that the mount and both processes are gone; close() cleans up whatever is left, always. The
    store and the state outlive stop() and start().
    """

    def __init__(self, folder, models=None, options=(), passthrough=True, config=None, env=None,
                 store=None, mount=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.models, self.options, self.env = dict(models or {}), list(options), dict(env or {})
        self.passthrough, self.config = passthrough, config
        # Short paths: a unix socket's has at most 107 bytes.
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="wfs-"))
        self.home.chmod(0o755)
        self.mount = pathlib.Path(mount) if mount else self.home / "models"
        if not mount:
            self.mount.mkdir()
        self.socket = self.home / "control.sock"
        self.store = pathlib.Path(store) if store else self.folder / "store"
        self.state = self.folder / "state"
        self.log = self.folder / "weightfs.log"
        self.process = None
        self._pids = set()

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None and self.process is not None:
                self.stop()
        finally:
            self.close()

    # ---- life

    def command(self):
        arguments = [str(binary()), "--socket", str(self.socket), "mount", str(self.mount),
                     "--store", str(self.store), "--state", str(self.state)]
        if not self.passthrough:
            arguments.append("--no-passthrough")
        if self.config is not None:
            path = self.folder / "config.json"
            path.write_text(json.dumps(self.config))
            path.chmod(0o644)
            arguments += ["--config", str(path)]
        for name, source in self.models.items():
            arguments += ["--model", f"{name}={source}"]
        return arguments + self.options

    def start(self, seconds=READY_SECONDS):
        assert self.process is None
        with open(self.log, "ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=os.environ | QUIET | self.env)
        self._pids.add(self.process.pid)

        def ready():
            code = self.process.poll()
            if code is not None:
                self.process = None
                raise StartError(code, self.log_text()[begin:])
            return self.cli("status", "--json", check=False).returncode == 0

        until(ready, seconds, "weightfs mount is ready", interval=0.05)
        self._note_pids()
        return self

    def stop(self, seconds=STOP_SECONDS):
        self._note_pids()
        self.process.send_signal(signal.SIGTERM)
        self.wait_stopped(seconds)

    def wait_stopped(self, seconds=STOP_SECONDS):
        """The foreground process ends with 0, and neither a process nor the mount stays."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Deadline(f"weightfs mount did not end within {seconds} s\n" + self.log_text()[-4000:])
        self.process = None
        for pid in self._pids:
            processes.wait_gone(pid, seconds, "a process of weightfs")
        assert not mounts.at(self.mount), "the mount is still there"
        assert code == 0, f"weightfs mount exited with {code}\n" + self.log_text()[-4000:]
        self.check_log()

    def kill_all(self):
        """kill -9 to everything at once, as a power cut would; leaves a dead mount behind."""
        self._note_pids()
        for pid in self._pids:
            processes.kill(pid)
        if self.process is not None:
            self.process.wait(STOP_SECONDS)
            self.process = None
        for pid in self._pids:
            processes.wait_gone(pid, STOP_SECONDS, "a killed process")

    def close(self):
        with contextlib.suppress(Exception):
            self._note_pids()
        for pid in self._pids:
            processes.kill(pid)
        if self.process is not None:
            self.process.wait()
            self.process = None
        mounts.detach(self.mount)
        shutil.rmtree(self.home, ignore_errors=True)

    def check_log(self):
        alarm = ALARMS.search(self.log_text())
        assert not alarm, f"the log has '{alarm[0]}'\n" + self.log_text()[alarm.start():][:6000]

    def log_text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _note_pids(self):
        """Remembers who must be gone in the end."""
        if self.process is not None:
            status = self.cli("status", "--json", check=False, timeout=5)
            if status.returncode == 0:
                data = json.loads(status.stdout)
                self._pids |= {data["pid"], data["keeper_pid"]}

    # ---- the daemon alone

    def kill_daemon(self, number=signal.SIGKILL):
        """Returns the pid that was killed."""
        pid = self.pid
        processes.kill(pid, number)
        return pid

    def kill_filling_daemon(self, seconds=READY_SECONDS):
        """Waits until the daemon is asking a source for what is missing, and kills it then."""
        def filling():
            status = self.status()
            under_way = any(fill["state"] == "filling" and fill["connections"] > 0 and
                            fill["written"] < fill["size"] for fill in status["fills"])
            return status["pid"] if under_way else None
        pid = until(filling, seconds, "a fill is under way")
        processes.kill(pid)
        return pid

    def wait_new_daemon(self, old, seconds=READY_SECONDS):
        """Waits until a daemon with another pid than `old` answers; returns its status."""
        def successor():
            try:  # a dead daemon that hangs in the kernel still has the socket open
                done = self.cli("status", "--json", check=False, timeout=5)
            except subprocess.TimeoutExpired:
                return None
            status = json.loads(done.stdout) if done.returncode == 0 else None
            return status if status and status["pid"] != old else None
        status = until(successor, seconds, f"a successor of daemon {old} answers", interval=0.05)
        self._pids.add(status["pid"])
        return status

    # ---- the command line

    def cli(self, *arguments, check=True, timeout=120, input=None):
        done = subprocess.run([str(binary()), "--socket", str(self.socket), *map(str, arguments)],
                              capture_output=True, text=True, timeout=timeout, input=input,
                              env=os.environ | self.env,
                              stdin=subprocess.DEVNULL if input is None else None)
        if check:
            assert done.returncode == 0, (f"weightfs {' '.join(map(str, arguments))} exited with "
                                          f"{done.returncode}: {done.stderr}{done.stdout}")
        return done

    def json(self, *arguments, **options):
        return json.loads(self.cli(*arguments, "--json", **options).stdout)

    def status(self):
        return self.json("status")

    def model(self, name):
        """What `ls NAME --json` says of one model."""
        answer = self.json("ls", name)
        return answer["models"][0] if "models" in answer else answer

    def wait(self, name, seconds=120):
        self.cli("warm", name)
        self.cli("wait", name, "--timeout", f"{seconds}s", timeout=seconds + 10)

    @property
    def pid(self):
        return self.status()["pid"]

    @property
    def keeper_pid(self):
        return self.status()["keeper_pid"]

    def reads(self):
        """READ requests that the kernel has sent since the daemon started."""
        return self.status()["fuse"]["reads"]

    def progress(self):
        """What changes as long as anything is fetched or served; None where the daemon does not answer."""
        try:
            done = self.cli("status", "--json", check=False, timeout=20)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            return None
        status = json.loads(done.stdout)
        fills = [(fill["path"], fill["state"], fill["written"], fill["hashed"]) for fill in status["fills"]]
        return (status["pid"], status["source"]["bytes"], status["store"]["blobs"],
                status["fuse"]["reads"], sorted(fills))

    def blobs(self):
        """Hex digests of what is published in the store."""
        return {path.name for path in (self.store / "blobs" / "sha256").glob("*/*")
                if re.fullmatch(r"[0-9a-f]{64}", path.name)}

    def blob(self, digest):
        return self.store / "blobs" / "sha256" / digest[:2] / digest
