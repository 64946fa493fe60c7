# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Fixtures of the mount suite.

Nothing here skips because the machine cannot mount: without root, /dev/fuse or the binary every test
fails, as a suite that did not run has shown nothing. Only passthrough itself is skipped on kernels that
do not have it (before 6.9), where the same tests run daemon-served.

Marks: `short` also runs under the address sanitizer, `stress` under the thread sanitizer.
"""

import os
import pathlib
import re
import shutil
import signal
import tempfile

import pytest

import daemon
import models
import mounts
from alone import alone
from fleet import cache, disk, fleet  # noqa: F401  (fixtures)
from origin import NginxOrigin
from tls import Certificates

TEST_SECONDS = 180
SMALL = (4, 2 << 20)     # shards, bytes of each
LARGE = (4, 272 << 20)


def pytest_configure(config):
    config.addinivalue_line("markers", "short: also runs with the address sanitizer")
    config.addinivalue_line("markers", "stress: also runs with the thread sanitizer")
    config.addinivalue_line("markers", "seconds(n): may take longer than the usual limit")


def kernel_has_passthrough():
    major, minor = map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())
    return (major, minor) >= (6, 9)


# ---- limits and logs

class TookTooLong(Exception):
    pass


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Ends a test that hangs, fixtures included."""
    mark = item.get_closest_marker("seconds")
    limit = mark.args[0] if mark else TEST_SECONDS

    def alarm(*_):
        raise TookTooLong(f"the test took more than {limit} s")

    signal.signal(signal.SIGALRM, alarm)
    signal.alarm(limit)
    yield
    signal.alarm(0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for fixture in getattr(item, "funcargs", {}).values():
            if isinstance(fixture, daemon.Weightfs):
                report.sections.append((f"log of {fixture.folder}", fixture.log_text()[-8000:]))


# ---- where things are

def everyone_may_enter(folder):
    return all(path.stat().st_mode & 0o001 for path in [folder, *folder.parents])


@pytest.fixture(scope="session", autouse=True)
def requirements():
    assert os.geteuid() == 0, "the mount suite needs root"
    assert os.path.exists("/dev/fuse"), "the mount suite needs /dev/fuse"
    assert daemon.binary().exists(), f"the mount suite needs {daemon.binary()}"


@pytest.fixture(scope="session")
def work(requirements):
    """A folder on a real disk that the unprivileged daemon can enter; emptied at the end."""
    base = daemon.BUILD / "integration"
    base.mkdir(exist_ok=True)
    base = base.resolve()
    if not everyone_may_enter(base):
        base = pathlib.Path("/var/tmp/weightfs-integration")
        base.mkdir(exist_ok=True)
        base.chmod(0o755)
        # The daemon must be able to run it as well.
        copy = base / f"weightfs.{os.getpid()}"
        shutil.copy2(daemon.binary(), copy)
        copy.replace(base / "weightfs")  # another process may run the one that was there
        os.environ["WEIGHTFS_BINARY"] = str(base / "weightfs")
    run = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=base))
    run.chmod(0o755)
    yield run
    mounts.detach_below(run)
    shutil.rmtree(run, ignore_errors=True)


@pytest.fixture(scope="session")
def kept(work):
    """A folder whose content is made once and used by later runs too."""
    folder = work.parent / "kept"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def folder(work, request):
    """A folder for one test, removed after it."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="test-", dir=work))
    path.chmod(0o755)
    yield path
    mounts.detach_below(path)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def certificates(work):
    return Certificates(work / "tls")


# ---- models and where they come from

@pytest.fixture(scope="session")
def small(kept):
    with alone(kept):
        return models.cached(kept / "small", *SMALL, seed=1)


@pytest.fixture(scope="session")
def large(kept):
    with alone(kept):
        return models.cached(kept / "large", *LARGE, seed=2)


@pytest.fixture(scope="session")
def nginx(work, small, large):
    """Both models behind one unlimited nginx: /small/ and /large/. Its log is shared by many tests."""
    with NginxOrigin(small.folder.parent, work / "nginx") as origin:
        yield origin


@pytest.fixture
def origin(folder, small, large):
    """Makes an nginx of the test's own: origin(rate=...)."""
    made = []

    def make(root=small.folder.parent, **options):
        instance = NginxOrigin(root, folder / f"nginx-{len(made)}", **options)
        made.append(instance)
        instance.start()
        return instance

    yield make
    for instance in made:
        instance.stop()


# ---- weightfs

@pytest.fixture(scope="session", params=["passthrough", "served"])
def mode(request):
    """Both ways in which a complete file is read."""
    if request.param == "passthrough" and not kernel_has_passthrough():
        pytest.skip(f"kernel {os.uname().release} has no passthrough")
    return request.param


@pytest.fixture
def weightfs(folder):
    """Makes mounted instances of the test's own: weightfs({"org/name": source}, ...)."""
    made = []

    def make(sources=None, start=True, **options):
        instance = daemon.Weightfs(folder / f"weightfs-{len(made)}", sources, **options)
        made.append(instance)
        if start:
            instance.start()
        return instance

    yield make
    broken = None
    for instance in reversed(made):
        try:
            if instance.process is not None:
                instance.stop()
            else:
                instance.check_log()
        except Exception as error:  # every instance is cleaned up before the first failure is told
            broken = broken or error
        finally:
            instance.close()
    if broken:
        raise broken


@pytest.fixture(scope="module")
def warm_mount(work, nginx, small, request):
    """Makes one mount per mode and module with the small model complete in its store."""
    made = {}

    def make(mode):
        if mode not in made:
            made[mode] = daemon.Weightfs(pathlib.Path(tempfile.mkdtemp(prefix="warm-", dir=work)),
                                         {"org/small": nginx.url("small/")},
                                         passthrough=mode == "passthrough")
            made[mode].folder.chmod(0o755)
            made[mode].start()
            made[mode].wait("org/small")
        return made[mode]

    yield make
    for instance in made.values():
        try:
            instance.stop()
        finally:
            instance.close()


@pytest.fixture
def warm(warm_mount, mode):
    """The small model, complete, in this mode; shared by the tests of a module, which change nothing."""
    return warm_mount(mode)
