# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The hub's own client library, by release, each in an environment of its own (packaging/hub.sh)."""

import json
import os
import pathlib
import shutil
import subprocess

FOLDER = pathlib.Path(os.environ.get("WEIGHTFS_HUB", "/var/cache/weightfs-tests/hub"))
RELEASES = ("0.36", "1.24", "newest")
SCRIPT = pathlib.Path(__file__).with_name("hub_client.py")


class Failed(AssertionError):
    """A call failed that had to work."""


class HubClient:
    """Runs calls of hub_client.py with one release. `home` is a writable folder for what it keeps.

    cache:    HF_HUB_CACHE; by default a folder in `home`
    endpoint: HF_ENDPOINT; without one, nothing can be reached
    prefix:   a command that runs the interpreter, as in ("setpriv", ...)
    ca:       the authorities to trust
    """

    def __init__(self, release, home, endpoint=None, cache=None, prefix=(), ca=None, **environment):
        self.python = FOLDER / release / "bin/python"
        assert self.python.exists(), f"no client of release {release}: run packaging/deps.sh hub"
        self.release, self.home = release, pathlib.Path(home)
        self.home.mkdir(parents=True, exist_ok=True)
        # An ordinary user may not be able to reach the source tree.
        self.script = shutil.copy(SCRIPT, self.home)
        self.cache = pathlib.Path(cache or self.home / "hub")
        self.prefix = list(prefix)
        # Nothing of this machine's settings: proxies would be asked for loopback, tokens sent.
        self.environment = {
            "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(self.home), "HF_HOME": str(self.home / "hf"),
            "HF_HUB_CACHE": str(self.cache), "HF_ENDPOINT": endpoint or "http://127.0.0.1:9",
            "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1"} | environment
        if ca:
            self.environment |= {"SSL_CERT_FILE": str(ca), "REQUESTS_CA_BUNDLE": str(ca)}

    def run(self, *command, stdin="", timeout=120, **environment):
        """Runs the environment's interpreter; returns what subprocess.run does."""
        return subprocess.run([*self.prefix, str(self.python), *command], input=stdin, capture_output=True, text=True,
                              env=self.environment | environment, timeout=timeout, cwd=self.home)

    def calls(self, *calls, **environment):
        """The outcome of each (name, {argument: value}): {"value": ...} or {"error": ...}."""
        done = self.run(str(self.script), stdin=json.dumps(calls), **environment)
        if done.returncode != 0:
            raise Failed(done.stderr)
        self.messages = done.stderr
        return json.loads(done.stdout)

    def call(self, name, arguments=None, **environment):
        """The value of one call that works."""
        [outcome] = self.calls((name, arguments or {}), **environment)
        if "error" in outcome:
            raise Failed(f"{self.release}: {name}: {outcome}\n{self.messages}")
        return outcome["value"]

    def error(self, name, arguments, **environment):
        """What one call fails with."""
        [outcome] = self.calls((name, arguments), **environment)
        assert "error" in outcome, f"{self.release}: {name}: {outcome}"
        return outcome

    def models(self, *arguments, **environment):
        """Runs hub_models.py, which needs the newest release; returns what it prints."""
        script = shutil.copy(pathlib.Path(__file__).with_name("hub_models.py"), self.home)
        done = self.run(str(script), *arguments, timeout=170, **environment)
        if done.returncode != 0:
            raise Failed(done.stderr)
        self.messages = done.stderr
        return json.loads(done.stdout) if done.stdout else None
