# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The command line: exit codes, one clear line, JSON everywhere, and what each command does."""

import errno
import json
import os
import signal
import subprocess
import time

import pytest

import models
import mounts
import processes
from daemon import binary
from readers import error_of, read_at, same_tree
from waiting import until

NAME = "org/small"
pytestmark = pytest.mark.short


def bare(*arguments, **options):
    """weightfs without a daemon of ours."""
    return subprocess.run([str(binary()), *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60, **options)


@pytest.fixture
def root(folder, small):
    """A folder of models that a test may change, to be served."""
    path = folder / "root"
    path.mkdir(mode=0o755)
    models.copy(small, path / "m")
    return path


# ---- without a daemon

def test_help_and_version(requirements):
    top = bare("--help")
    assert top.returncode == 0 and not top.stderr
    for command in ("mount", "keeper", "daemon", "add", "rm", "ls", "update", "warm", "wait", "pin", "unpin",
                    "evict", "verify", "status", "why", "unmount", "manifest", "config"):
        assert command in top.stdout
        done = bare(command, "--help")
        assert done.returncode == 0 and command in done.stdout
    version = bare("--version")
    assert version.returncode == 0 and version.stdout.strip()


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["add"], ["add", "only-a-name"], ["wait"],
                                       ["status", "--nonsense"], ["mount"], ["why"],
                                       ["wait", "x", "--timeout", "soon"]], ids=" ".join)
def test_wrong_usage_is_exit_2_and_says_so_on_stderr(arguments):
    done = bare(*arguments)
    assert done.returncode == 2
    assert done.stderr.strip() and not done.stdout


@pytest.mark.parametrize("arguments", [["status"], ["ls"], ["add", "a/b", "file:///tmp"], ["rm", "a/b"],
                                       ["update", "a/b"], ["warm", "a/b"], ["wait", "a/b"], ["pin", "a/b"],
                                       ["unpin", "a/b"], ["evict", "a/b"], ["verify"], ["why", "/x"],
                                       ["unmount"]], ids=" ".join)
def test_without_a_daemon_it_is_exit_4_and_one_clear_line(folder, arguments):
    socket = folder / "none.sock"
    done = bare("--socket", socket, *arguments)
    assert done.returncode == 4
    assert str(socket) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_manifest_describes_a_directory_and_is_what_an_origin_needs(folder, small, weightfs, origin):
    plain = folder / "root/m"
    plain.parent.mkdir(mode=0o755)
    models.copy(small, plain)
    (plain / "weightfs.json").unlink()
    assert bare("manifest", plain).returncode == 0
    written = json.loads((plain / "weightfs.json").read_text())["files"]
    assert {entry["path"]: (entry["size"], entry["sha256"]) for entry in written} == \
        {name: (file.size, file.sha256) for name, file in small.files.items()}
    assert bare("manifest", plain).returncode == 0, "twice gives the same"
    assert json.loads((plain / "weightfs.json").read_text())["files"] == written
    mounted = weightfs({NAME: origin(root=plain.parent).url("m/")})
    same_tree(mounted.mount / NAME, small)


def test_manifest_of_what_is_no_directory_fails(folder):
    assert bare("manifest", folder / "missing").returncode in (1, 3)


def test_config_check_prints_where_each_value_is_from(folder):
    path = folder / "config.json"
    path.write_text('{\n  // comments are allowed\n  "deadline": "30s"\n}\n')
    done = bare("config", "check", "--config", path)
    assert done.returncode == 0
    assert "deadline" in done.stdout and str(path) in done.stdout and "default" in done.stdout
    json.loads(bare("config", "check", "--config", path, "--json").stdout)
    path.write_text('{"deadlin": "30s"}')
    wrong = bare("config", "check", "--config", path)
    assert wrong.returncode in (1, 2) and "deadlin" in wrong.stderr
    path.write_text('{"deadline": }')
    assert bare("config", "check", "--config", path).returncode in (1, 2)


@pytest.mark.parametrize("other", [("--mode", "off"), ("--mode", "shadow"), ("--admission", "never")], ids=" ".join)
def test_strict_verification_where_nothing_is_kept_is_refused_at_once(folder, other):
    for command in (["config", "check"], ["mount", folder]):
        done = bare(*command, "--verify", "strict", *other, "--store", folder / "store")
        assert done.returncode == 2 and not done.stdout
        assert "strict" in done.stderr and " ".join(other).removeprefix("--") in done.stderr
    assert not (folder / "store").exists()


def overlaps(folder):
    """A mount point, and options that make a daemon on it wait for itself."""
    point = folder / "over/point"
    point.mkdir(parents=True)
    os.symlink(point, folder / "link")
    apart = {"--store": folder / "store", "--state": folder / "state", "--socket": folder / "s"}
    for change in ({"--store": point / "store"}, {"--state": folder / "link/state"}, {"--socket": point / "s"},
                   {"--config": point / "config.json"}, {"--store": folder / "over"},
                   {"--state": folder / "over"}):
        yield point, [str(word) for option in (apart | change).items() for word in option]


def test_a_mount_over_what_its_daemon_needs_is_refused_at_once(folder):
    for point, options in overlaps(folder):
        done = bare("mount", point, *options)
        assert done.returncode == 2 and str(point) in done.stderr, done.stderr
        assert not mounts.at(point) and sorted(os.listdir(folder)) == ["link", "over"] and not os.listdir(point)
    done = bare("keeper", point, "--listen", folder / "link/keeper.sock")
    assert done.returncode == 2 and str(point) in done.stderr, done.stderr


def test_a_daemon_apart_whose_mount_covers_what_it_needs_ends_at_once(folder):
    cases = list(overlaps(folder))
    point, socket = cases[0][0], folder / "k"
    keeper = subprocess.Popen([str(binary()), "keeper", str(point), "--listen", str(socket)],
                              stderr=subprocess.DEVNULL)
    try:
        until(socket.exists, 10, "the keeper listens")
        for _, options in cases:
            done = bare("daemon", "--keeper", socket, *options)
            assert done.returncode == 2 and str(point) in done.stderr, done.stderr
        done = bare("daemon", "--keeper", point / "k", "--store", folder / "store")
        assert done.returncode == 2 and str(point) in done.stderr, done.stderr
    finally:
        keeper.terminate()
        keeper.wait(20)
        mounts.detach(point)


# ---- life of a model

def test_add_ls_and_rm(weightfs, nginx, small):
    mounted = weightfs({})
    assert os.listdir(mounted.mount) == []
    mounted.cli("add", NAME, nginx.url("small/"))
    same_tree(mounted.mount / NAME, small)
    assert NAME in mounted.cli("ls").stdout
    assert nginx.url("small/") in mounted.cli("ls", NAME).stdout
    mounted.cli("rm", NAME)
    assert NAME not in mounted.cli("ls").stdout
    until(lambda: os.listdir(mounted.mount) == [], 5, "the name goes at once")
    assert error_of(os.stat, mounted.mount / NAME) == errno.ENOENT


def test_adding_twice_is_fine_and_with_another_source_is_an_error(weightfs, nginx):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.cli("add", NAME, nginx.url("small/"))
    other = mounted.cli("add", NAME, nginx.url("large/"), check=False)
    assert other.returncode == 1
    assert NAME in other.stderr


@pytest.mark.parametrize("name", ["", "/abs", "a/../b", ".hidden", "a@b", "a//b", "a/", "x" * 300, "a\nb/."])
def test_bad_names_are_refused(weightfs, nginx, name):
    mounted = weightfs({})
    done = mounted.cli("add", name, nginx.url("small/"), check=False)
    assert done.returncode in (1, 2)
    assert done.stderr.strip()


@pytest.mark.parametrize("source", ["", "nonsense", "ftp://127.0.0.1/x", "http://", "http://user:hunter2@127.0.0.1/",
                                    "file://relative", "file:///does/not/exist", "http://127.0.0.1:1/none/"])
def test_bad_sources_are_refused_with_a_reason_and_without_the_secret(weightfs, source):
    mounted = weightfs({})
    done = mounted.cli("add", NAME, source, check=False)
    assert done.returncode in (1, 2, 3)
    assert done.stderr.strip()
    assert "hunter2" not in done.stderr + done.stdout + mounted.log_text()
    assert os.listdir(mounted.mount) == []


@pytest.mark.parametrize("command", ["rm", "update", "warm", "wait", "pin", "unpin", "evict", "verify", "ls"])
def test_a_name_that_is_not_there_is_exit_3(weightfs, command):
    done = weightfs({}).cli(command, "no/such", check=False)
    assert done.returncode == 3
    assert "no/such" in done.stderr


def test_names_survive_a_restart_without_the_model_option(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.stop()
    mounted.models = {}
    mounted.start()
    same_tree(mounted.mount / NAME, small)


def test_update_flips_to_the_new_revision_and_keeps_the_old(weightfs, root, origin, small):
    mounted = weightfs({NAME: origin(root=root).url("m/")})
    mounted.wait(NAME)
    old = mounted.model(NAME)
    held = os.open(mounted.mount / NAME / "config.json", os.O_RDONLY)
    (root / "m/config.json").write_text('{"new": true}')
    (root / "m/extra.json").write_text("{}")
    new = models.describe(root / "m")
    mounted.cli("update", NAME)
    same_tree(mounted.mount / NAME, new)
    assert os.pread(held, 10_000, 0) == small.data("config.json"), "who has it open keeps it"
    os.close(held)
    assert mounted.model(NAME)["revision"] != old["revision"]
    same_tree(mounted.mount / f"{NAME}@{old['revision']}", small)
    same_tree(mounted.mount / ".snapshots" / old["snapshot"], small)


def test_update_without_news_changes_nothing(weightfs, nginx):
    mounted = weightfs({NAME: nginx.url("small/")})
    before = mounted.model(NAME)
    assert mounted.cli("update", NAME).returncode == 0
    assert mounted.model(NAME)["revision"] == before["revision"]


def test_warm_returns_at_once_and_wait_returns_when_all_is_verified(weightfs, origin, small):
    mounted = weightfs({NAME: origin(rate=512 << 10).url("small/")})
    began = time.monotonic()
    mounted.cli("warm", NAME)
    assert time.monotonic() - began < 2
    early = mounted.cli("wait", NAME, "--timeout", "100ms", check=False)
    assert early.returncode == 3
    mounted.cli("wait", NAME)
    assert {file.sha256 for file in small.files.values()} <= mounted.blobs()
    assert mounted.cli("wait", NAME, "--timeout", "1s").returncode == 0


def test_wait_keeps_to_its_time_though_the_daemon_is_stopped(weightfs, nginx):
    mounted = weightfs({NAME: nginx.url("small/")})
    pid = mounted.kill_daemon(signal.SIGSTOP)
    try:
        began = time.monotonic()
        done = mounted.cli("wait", NAME, "--timeout", "1s", check=False)
        assert done.returncode == 4 and "not answered" in done.stderr
        assert time.monotonic() - began < 5
    finally:
        processes.kill(pid, signal.SIGCONT)


def test_a_command_waits_for_the_successor_of_a_daemon_that_was_killed(weightfs, nginx):
    mounted = weightfs({NAME: nginx.url("small/")})
    for _ in range(3):
        old = mounted.kill_daemon()
        for command in (("ls",), ("pin", NAME), ("status",)):
            mounted.cli(*command)
        assert mounted.pid != old


def test_warm_with_wait_is_both(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    done = mounted.cli("warm", NAME, "--wait")
    assert "\r" not in done.stdout + done.stderr, "no progress bar without a terminal"
    assert {file.sha256 for file in small.files.values()} <= mounted.blobs()


def test_warm_draws_a_progress_bar_on_a_terminal(weightfs, origin):
    mounted = weightfs({NAME: origin(rate=256 << 10).url("small/")})
    command = f"{binary()} --socket {mounted.socket} warm {NAME} --wait"
    done = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 0
    assert b"\r" in done.stdout and b"%" in done.stdout


def test_evict_frees_the_disk_and_a_pin_prevents_it(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    mounted.cli("pin", NAME)
    refused = mounted.cli("evict", NAME, check=False)
    assert refused.returncode == 1 and "pin" in refused.stderr
    assert mounted.blobs()
    mounted.cli("unpin", NAME)
    assert mounted.cli("evict", NAME, "--dry-run").returncode == 0
    assert mounted.blobs(), "a dry run removes nothing"
    mounted.cli("evict", NAME)
    assert not mounted.blobs()
    assert mounted.status()["store"]["bytes"] == 0
    same_tree(mounted.mount / NAME, small)


def test_evicting_under_an_open_file_leaves_its_reader_alone(weightfs, nginx, small, mode):
    mounted = weightfs({NAME: nginx.url("small/")}, passthrough=mode == "passthrough")
    mounted.wait(NAME)
    name = small.shards[0]
    with open(mounted.mount / NAME / name, "rb", buffering=0) as file:
        file.read(10)
        mounted.cli("evict", NAME, check=False)
        mounts.drop_caches()
        assert os.pread(file.fileno(), 4 << 20, 0) == small.data(name)
    same_tree(mounted.mount / NAME, small)


def test_blobs_shared_with_another_model_are_not_evicted_under_it(weightfs, root, origin, small):
    models.copy(small, root / "twin")
    source = origin(root=root)
    mounted = weightfs({"org/one": source.url("m/"), "org/two": source.url("twin/")})
    mounted.wait("org/one")
    kept = mounted.json("evict", "org/one")
    assert kept["blobs"] == 0 and kept["shared_blobs"] == len(mounted.blobs())
    sent = source.sent()
    same_tree(mounted.mount / "org/two", small)
    assert source.sent() == sent
    mounted.cli("pin", "org/two")
    assert mounted.json("evict", "org/one", "--shared")["blobs"] == 0, "a pin is never overruled"
    mounted.cli("unpin", "org/two")
    assert mounted.json("evict", "org/one", "--shared")["shared_blobs"] == 0
    assert not mounted.blobs()


def test_why_explains_each_state_in_one_sentence(weightfs, origin, small):
    mounted = weightfs({NAME: origin().url("small/")})
    path = mounted.mount / NAME / small.shards[0]
    cold = mounted.cli("why", path).stdout
    mounted.wait(NAME)
    warm = mounted.cli("why", path).stdout
    assert cold.strip() and warm.strip() and cold != warm
    json.loads(mounted.cli("why", path, "--json").stdout)
    assert mounted.cli("why", mounted.mount / "no/such", check=False).returncode == 3


# ---- status and JSON

def test_status_has_what_it_promises(weightfs, nginx):
    mounted = weightfs({NAME: nginx.url("small/")})
    mounted.wait(NAME)
    status = mounted.status()
    for path in ("pid", "keeper_pid", "mode", "mount", "passthrough.active", "passthrough.reason",
                 "store.bytes", "store.blobs", "store.capacity", "cache.hits", "cache.misses",
                 "cache.hit_bytes", "cache.miss_bytes", "source.bytes", "source.requests", "fuse.reads",
                 "fuse.opens", "fills"):
        value = status
        for key in path.split("."):
            assert key in value, path
            value = value[key]
    assert status["mount"] == str(mounted.mount)
    assert processes.is_running(status["pid"]) and processes.is_running(status["keeper_pid"])
    assert status["fills"] == []
    assert mounted.cli("status").stdout.strip()


def test_every_printing_command_speaks_json(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")})
    commands = [("ls",), ("ls", NAME), ("status",), ("warm", NAME, "--wait"), ("wait", NAME), ("pin", NAME),
                ("unpin", NAME), ("verify", NAME), ("why", mounted.mount / NAME / "config.json"),
                ("update", NAME), ("evict", NAME), ("add", "org/two", nginx.url("small/")),
                ("rm", "org/two")]
    for command in commands:
        json.loads(mounted.cli(*command, "--json").stdout)


def test_the_socket_speaks_http(weightfs, nginx):
    """Whatever its paths are: it answers a stranger politely."""
    mounted = weightfs({NAME: nginx.url("small/")})
    import http.client
    import socket as sockets

    class Connection(http.client.HTTPConnection):
        def connect(self):
            self.sock = sockets.socket(sockets.AF_UNIX)
            self.sock.connect(str(mounted.socket))

    for method, path in (("GET", "/no/such"), ("POST", "/"), ("DELETE", "/x" * 5000)):
        connection = Connection("localhost", timeout=10)
        connection.request(method, path)
        assert 400 <= connection.getresponse().status < 500
    for junk in (b"\0" * 100, b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"):
        with sockets.socket(sockets.AF_UNIX) as raw:
            raw.settimeout(10)
            raw.connect(str(mounted.socket))
            raw.sendall(junk)
    assert mounted.status()["pid"]


def test_the_socket_is_not_for_everyone(weightfs):
    mounted = weightfs({})
    done = subprocess.run(["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", str(binary()),
                           "--socket", str(mounted.socket), "unmount"], capture_output=True, text=True)
    assert done.returncode == 4
    assert "Permission denied" in done.stderr and "sudo" in done.stderr
    assert mounted.status()["pid"]


# ---- mount itself

def test_detach_returns_once_it_is_ready(weightfs, nginx, small):
    mounted = weightfs({NAME: nginx.url("small/")}, start=False)
    done = subprocess.run([*mounted.command(), "--detach"], capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    status = mounted.status()
    mounted._pids |= {status["pid"], status["keeper_pid"]}
    same_tree(mounted.mount / NAME, small)
    mounted.cli("unmount")
    for pid in (status["pid"], status["keeper_pid"]):
        processes.wait_gone(pid, 20, "a detached process")
    assert not mounts.at(mounted.mount)


def test_detach_tells_of_a_failed_start(weightfs, folder):
    mounted = weightfs({}, start=False, mount=folder / "missing")
    done = subprocess.run([*mounted.command(), "--detach"], capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 3  # as without --detach: not found
    assert str(folder / "missing") in done.stderr


def test_detach_tells_of_a_model_that_could_not_be_added(weightfs, nginx, folder):
    mounted = weightfs({NAME: nginx.url("small/"), "org/typo": nginx.url("no/such/")}, start=False)
    done = subprocess.run([*mounted.command(), "--detach"], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    try:
        assert done.returncode == 0, done.stderr
        assert "org/typo" in done.stderr and "404" in done.stderr and NAME not in done.stderr
        status = mounted.status()
        mounted._pids |= {status["pid"], status["keeper_pid"]}
        assert [model["name"] for model in status["missing_models"]] == ["org/typo"]
    finally:
        mounted.cli("unmount", check=False)


def test_keeper_and_daemon_started_apart(weightfs, nginx, small, folder):
    """As two units do it. Either may be started first; the daemon may be replaced."""
    mounted = weightfs({}, start=False)
    keeper_socket = mounted.home / "keeper.sock"
    log = open(mounted.log, "ab")
    keeper = subprocess.Popen([str(binary()), "keeper", str(mounted.mount), "--listen", str(keeper_socket)],
                              stdout=log, stderr=log)
    mounted._pids.add(keeper.pid)
    until(keeper_socket.exists, 10, "the keeper listens")
    command = [str(binary()), "--socket", str(mounted.socket), "daemon", "--keeper", str(keeper_socket),
               "--store", str(mounted.store), "--state", str(mounted.state),
               "--model", f"{NAME}={nginx.url('small/')}"]
    try:
        for _ in range(2):
            daemon = subprocess.Popen(command, stdout=log, stderr=log)
            mounted._pids.add(daemon.pid)
            until(lambda: mounted.cli("status", "--json", check=False).returncode == 0, 20, "it answers")
            same_tree(mounted.mount / NAME, small)
            daemon.kill()
            daemon.wait()
    finally:
        keeper.terminate()
        keeper.wait(20)


def test_two_instances_on_one_machine_do_not_meet(weightfs, nginx, small):
    one = weightfs({"a/one": nginx.url("small/")})
    two = weightfs({"b/two": nginx.url("small/")})
    assert os.listdir(one.mount) == ["a"] and os.listdir(two.mount) == ["b"]
    one.wait("a/one")
    # An index of shards is read when its model is added; weights are not.
    assert not two.blobs() & {small.files[shard].sha256 for shard in small.shards}
    assert read_at(two.mount / "b/two/config.json", 0, 100) == small.data("config.json")[:100]


@pytest.mark.parametrize("mode_name", ["off", "shadow", "prod"])
def test_modes_are_accepted_and_reads_are_right_in_each(weightfs, nginx, small, mode_name):
    mounted = weightfs({NAME: nginx.url("small/")}, options=["--mode", mode_name])
    assert mounted.status()["mode"] == mode_name
    same_tree(mounted.mount / NAME, small)
    if mode_name != "prod":
        assert not mounted.blobs()


@pytest.mark.parametrize("admission", ["always", "second-reference", "never"])
def test_admission_is_accepted(weightfs, nginx, small, admission):
    mounted = weightfs({NAME: nginx.url("small/")}, options=["--admission", admission])
    same_tree(mounted.mount / NAME, small)
