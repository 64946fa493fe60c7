# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A miss: who gets which bytes when, and what the origin is asked for."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

import hostile
import models
import mounts
import processes
from readers import Readers, error_of, read_at, same_file, same_tree
from waiting import stays, until

MIB = 1 << 20
NAME = "org/model"
PART = 8 * MIB


def fetched(origin, model, prefix):
    """Bytes of weights that the origin has sent."""
    return sum(origin.sent(f"{prefix}/{name}") for name in model.shards)


# ---- one fill, however many readers

@pytest.mark.parametrize("modes", ["pread", "mmap", "mixed"])
@pytest.mark.seconds(300)
def test_64_processes_at_random_offsets_get_right_bytes_and_each_byte_is_fetched_once(
        weightfs, origin, large, mode, modes):
    shard = large.shards[1]
    size = large.files[shard].size
    source = origin()
    mounted = weightfs({NAME: source.url("large/")}, passthrough=mode == "passthrough")
    with Readers(mounted.mount / NAME, large.folder, [shard], [modes] * 64, count=40) as readers:
        readers.finish(240)
    until(lambda: large.files[shard].sha256 in mounted.blobs(), 60, "the shard is complete")
    assert source.coverage(f"large/{shard}", size) == (1, 1)


@pytest.mark.short
@pytest.mark.stress
def test_many_processes_on_a_small_cold_model(weightfs, origin, small, mode):
    source = origin(rate=MIB)
    mounted = weightfs({NAME: source.url("small/")}, passthrough=mode == "passthrough")
    with Readers(mounted.mount / NAME, small.folder, small.shards, ["mixed"] * 12, count=30) as readers:
        readers.finish(120)
    mounted.wait(NAME)
    for name in small.shards:
        assert source.coverage(f"small/{name}", small.files[name].size) == (1, 1)
    same_tree(mounted.mount / NAME, small)


def test_the_same_bytes_in_two_snapshots_are_one_blob_and_one_fetch(weightfs, folder, small, origin):
    root = folder / "root"
    root.mkdir(mode=0o755)
    models.copy(small, root / "one")
    two = models.copy(small, root / "two")
    (root / "two/config.json").write_text("{}")
    two = models.describe(two.folder)
    source = origin(root=root)
    mounted = weightfs({"org/one": source.url("one/"), "org/two": source.url("two/")})
    mounted.wait("org/one")
    mounted.wait("org/two")
    for name in small.shards:
        assert source.sent(f"one/{name}") + source.sent(f"two/{name}") == small.files[name].size
    distinct = {file.sha256 for model in (small, two) for file in model.files.values()}
    assert mounted.blobs() == distinct
    assert mounted.status()["store"]["blobs"] == len(distinct)


CEILINGS = {
    "default": {},
    "fewer and smaller": {"connections": 6, "connections_per_blob": 3, "part_size": "1MiB"},
    "more": {"connections": 48, "connections_per_blob": 24},
}


@pytest.mark.parametrize("config", CEILINGS.values(), ids=CEILINGS.keys())
@pytest.mark.seconds(300)
def test_connections_and_parts_stay_below_their_ceilings(weightfs, folder, config):
    at_once, per_blob = config.get("connections", 64), config.get("connections_per_blob", 16)
    part = MIB if config.get("part_size") else PART
    content = b"".join(models.noise("ceilings", (12 if at_once < 16 else 48) * MIB))
    contents = {f"{i}.safetensors": bytes([i]) + content for i in range(8)}
    plain = folder / "plain"
    plain.mkdir()
    for name, data in contents.items():
        (plain / name).write_bytes(data)
    with hostile.HostileOrigin(models.served("m", contents)) as source:
        for name in contents:
            source.faults[f"m/{name}"] = [hostile.slow(2 * MIB)]
        mounted = weightfs({NAME: source.url("m/")}, config=config)
        mounted.cli("warm", NAME)
        with Readers(mounted.mount / NAME, plain, list(contents), ["pread"] * 8, count=20) as readers:
            readers.finish(150)
        mounted.wait(NAME)
        most = max(source.peak[f"m/{name}"] for name in contents)
        assert most <= per_blob
        assert source.peak[None] <= at_once
        assert most > (16 if per_blob > 16 else 1), "parts are fetched side by side, as many as configured"
        asked = [request.span[1] - request.span[0] for request in source.requests if request.span]
        assert max(asked) <= part


# ---- what comes first, and what does not come at all

def test_a_read_at_the_far_end_does_not_wait_for_what_lies_before(weightfs, origin, large):
    source = origin(rate=2 * MIB)
    mounted = weightfs({NAME: source.url("large/")})
    shard = large.shards[0]
    size = large.files[shard].size
    path = mounted.mount / NAME / shard
    descriptor = os.open(path, os.O_RDONLY)
    os.pread(descriptor, 4096, 0)
    slowest = 0.0
    for offset in (size - 4096, size // 2, size // 3, size // 5 * 4):
        began = time.monotonic()
        assert os.pread(descriptor, 4096, offset) == read_at(large.path(shard), offset, 4096)
        slowest = max(slowest, time.monotonic() - began)
    os.close(descriptor)
    # A whole part takes 4 s at this rate.
    assert slowest < 2.0
    assert large.files[shard].sha256 not in mounted.blobs()


def test_listing_and_looking_around_fetches_nothing(weightfs, origin, large):
    source = origin()
    mounted = weightfs({NAME: source.url("large/")})
    before = source.sent()
    subprocess.run(["ls", "-lR", str(mounted.mount)], check=True, capture_output=True)
    subprocess.run(["find", str(mounted.mount), "-size", "+1k"], check=True, capture_output=True)
    subprocess.run(["du", "-s", str(mounted.mount)], check=True, capture_output=True)
    stays(lambda: source.sent() == before, 2, "nothing is fetched")


@pytest.fixture
def catalog(weightfs, origin, small, large):
    """Makes (pulls, mounted) for a mount with two models, of 8 MB and of over 1 GB."""
    source = origin()
    mounted = weightfs({"org/small": source.url("small/"), "org/large": source.url("large/")})

    def pulls(limit):
        """Whether of no file of weights more than `limit` was sent, and of no other more than it has."""
        for prefix, model in (("small", small), ("large", large)):
            for name, file in model.files.items():
                allowed = limit if name in model.shards else file.size
                if source.sent(f"{prefix}/{name}") > allowed:
                    return False
        return True

    return pulls, mounted


BLOCK = 64 << 10  # the grain of what is fetched


def test_an_indexer_pulls_no_more_than_it_reads(catalog):
    pulls, mounted = catalog
    seen = 0
    for root, _, names in os.walk(mounted.mount):
        for name in names:
            with open(os.path.join(root, name), "rb", buffering=0) as file:
                seen += len(file.read(4096)) == 4096
    assert seen >= 8
    # Ahead of a first read of 4 KiB the kernel reads 16 KiB at most: that is one block.
    stays(lambda: pulls(BLOCK), 3, "the indexer pulls more than the heads of weights")


def test_grep_over_everything_pulls_no_more_than_it_reads(catalog):
    pulls, mounted = catalog
    done = subprocess.run(["grep", "-rIl", "MadeUpForCausalLM", str(mounted.mount)],
                          capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == [str(mounted.mount / name / "config.json")
                                           for name in ("org/large", "org/small")]
    # It reads 96 KiB of a file, sees that it is binary and goes on to the next; the kernel reads four
    # times as much ahead of that, rounded up to a power of two, and once more as it goes.
    stays(lambda: pulls(MIB), 3, "grep pulls more than the heads of weights")


def test_grep_for_configurations_pulls_no_weights(weightfs, origin, large):
    source = origin()
    mounted = weightfs({NAME: source.url("large/")})
    done = subprocess.run(["grep", "-rl", "--include=*.json", "MadeUpForCausalLM", str(mounted.mount)],
                          capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(mounted.mount / NAME / "config.json")]
    stays(lambda: fetched(source, large, "large") == 0, 3, "grep of configurations pulls weights")


def test_a_loader_gets_the_rest_of_the_snapshot_ahead_of_its_reads(weightfs, origin, large):
    source = origin()
    mounted = weightfs({NAME: source.url("large/")})
    with open(mounted.mount / NAME / large.shards[0], "rb", buffering=0) as file:
        while file.read(4 * MIB):
            pass
    until(lambda: {large.files[name].sha256 for name in large.shards} <= mounted.blobs(), 120,
          "the other shards come without being read")


def test_blocks_of_a_file_that_fills_grow_with_what_is_there(weightfs, origin, large):
    source = origin(rate=MIB // 2)
    mounted = weightfs({NAME: source.url("large/")})
    path = mounted.mount / NAME / large.shards[0]
    assert os.stat(path).st_blocks == 0
    assert os.stat(path).st_size == large.files[large.shards[0]].size
    read_at(path, 0, 4096)
    until(lambda: 0 < os.stat(path).st_blocks * 512 < large.files[large.shards[0]].size, 10,
          "st_blocks of a partial file")


@pytest.mark.seconds(300)
def test_memory_stays_bounded_while_filling_at_full_speed(weightfs, origin, large):
    mounted = weightfs({NAME: origin().url("large/")})
    mounted.cli("warm", NAME)
    pid, most = mounted.pid, 0

    def done():
        nonlocal most
        most = max(most, processes.status_field(pid, "RssAnon"))
        return len(mounted.blobs()) == len(large.files)

    until(done, 200, "the model is complete")
    assert most < 512 << 10


# ---- going on after a restart

@pytest.mark.parametrize("crash", [False, True], ids=["stopped", "killed"])
def test_a_fill_resumes_from_what_is_on_disk(weightfs, origin, large, crash):
    source = origin(rate=2 * MIB)
    mounted = weightfs({NAME: source.url("large/")})
    mounted.cli("warm", NAME)
    until(lambda: fetched(source, large, "large") > large.size // 3, 120, "a third is fetched")
    mounted.kill_all() if crash else mounted.stop()
    mounted.start()
    mounted.wait(NAME, 150)
    # Requests under way when it ended are asked for again, and what was not marked yet: not more.
    assert fetched(source, large, "large") < large.size * 1.25
    same_tree(mounted.mount / NAME, large, large.shards[:2])


def test_complete_blobs_are_not_asked_for_again_after_a_crash(weightfs, origin, small):
    source = origin()
    mounted = weightfs({NAME: source.url("small/")})
    mounted.wait(NAME)
    before = source.sent()
    mounted.kill_all()
    mounted.start()
    same_tree(mounted.mount / NAME, small)
    assert source.sent() - before <= os.path.getsize(small.path("weightfs.json"))


def test_a_complete_model_is_served_while_the_origin_is_down(weightfs, origin, small, mode):
    source = origin()
    mounted = weightfs({NAME: source.url("small/")}, passthrough=mode == "passthrough")
    mounted.wait(NAME)
    mounted.stop()
    source.stop()
    mounted.start()
    same_tree(mounted.mount / NAME, small)


# ---- when the source is slow, silent or gone

IMPATIENT = {"stall_timeout": "2s", "deadline": "4s"}


@pytest.fixture
def one_file(weightfs):
    """Makes (origin, mounted, path) for one file with faults."""
    content = b"".join(models.noise("one file", 3 * MIB))
    opened = []

    def make(*faults, config=None):
        source = hostile.HostileOrigin(models.served("m", {"w.safetensors": content}))
        source.__enter__()
        opened.append(source)
        source.faults["m/w.safetensors"] = list(faults)
        mounted = weightfs({NAME: source.url("m/")}, config=config or IMPATIENT)
        return source, mounted, mounted.mount / NAME / "w.safetensors"

    make.content = content
    yield make
    for source in opened:
        source.__exit__()


def test_a_stalled_range_is_asked_for_again(one_file):
    source, mounted, path = one_file(hostile.once(hostile.stall(100_000)), config={"stall_timeout": "2s"})
    assert read_at(path, 0, len(one_file.content)) == one_file.content
    assert len(source.of("m/w.safetensors")) >= 2


OUT_OF_REACH = {"silent": hostile.stall(0), "refusing": hostile.refuse}


@pytest.mark.parametrize("fault", OUT_OF_REACH.values(), ids=OUT_OF_REACH.keys())
def test_no_progress_for_the_deadline_fails_the_open_with_etimedout(one_file, fault):
    _, mounted, path = one_file(fault)
    began = time.monotonic()
    assert error_of(os.open, path, os.O_RDONLY) == errno.ETIMEDOUT
    assert 2 < time.monotonic() - began < 20
    assert "timed out" in mounted.cli("why", path, check=False).stdout.lower()


@pytest.mark.parametrize("fault", OUT_OF_REACH.values(), ids=OUT_OF_REACH.keys())
def test_bytes_of_an_earlier_daemon_do_not_stand_for_a_source_that_is_gone(one_file, fault):
    """Or the open would succeed, and whoever maps the file would die of SIGBUS."""
    source, mounted, path = one_file()
    assert read_at(path, 0, 4096) == one_file.content[:4096]
    mounted.stop()
    source.faults["m/w.safetensors"] = [fault]
    mounted.start()
    assert 0 < os.stat(path).st_blocks * 512 < len(one_file.content)
    assert error_of(os.open, path, os.O_RDONLY) == errno.ETIMEDOUT
    source.faults.clear()
    assert read_at(path, 0, len(one_file.content)) == one_file.content


def test_a_wait_in_an_open_file_ends_with_etimedout(one_file):
    source, mounted, path = one_file()
    descriptor = os.open(path, os.O_RDONLY)
    source.faults["m/w.safetensors"] = [hostile.stall(0)]
    assert error_of(os.pread, descriptor, 4096, 2 * MIB) == errno.ETIMEDOUT
    os.close(descriptor)


def test_after_the_deadline_the_next_open_asks_again(one_file):
    source, _, path = one_file(hostile.stall(0))
    assert error_of(read_at, path, 0, 4096) == errno.ETIMEDOUT
    source.faults.clear()
    assert read_at(path, 0, 4096) == one_file.content[:4096]


@pytest.mark.short
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_reader_that_is_killed_while_it_waits_dies_at_once(one_file, number):
    source, mounted, path = one_file(hostile.stall(0), config={})
    reader = subprocess.Popen([sys.executable, "-c",
                               "import os, sys; os.pread(os.open(sys.argv[1], 0), 4096, 0)", str(path)],
                              stderr=subprocess.DEVNULL)
    until(lambda: source.of("m/w.safetensors"), 10, "the read has reached the origin")
    began = time.monotonic()
    reader.send_signal(number)
    assert reader.wait(10) != 0
    assert time.monotonic() - began < 1.0
    assert mounted.status()["pid"]


def test_a_killed_mmap_reader_dies_at_once(one_file):
    source, _, path = one_file(hostile.stall(0), config={})
    reader = subprocess.Popen([sys.executable, "-c", "import mmap, os, sys\n"
                               "mmap.mmap(os.open(sys.argv[1], 0), 0, prot=1)[5]", str(path)])
    until(lambda: source.of("m/w.safetensors"), 10, "the fault has reached the origin")
    began = time.monotonic()
    reader.kill()
    reader.wait(10)
    assert time.monotonic() - began < 1.0


def test_a_slow_fill_does_not_keep_the_mount_from_stopping(weightfs, origin, large):
    source = origin(rate=256 << 10)
    mounted = weightfs({NAME: source.url("large/")})
    mounted.cli("warm", NAME)
    until(lambda: mounted.status()["fills"], 20, "a fill runs")
    began = time.monotonic()
    mounted.stop()
    assert time.monotonic() - began < 10


def test_progress_of_fills_is_in_the_status(weightfs, origin, large):
    source = origin(rate=MIB)
    mounted = weightfs({NAME: source.url("large/")})
    mounted.cli("warm", NAME)
    until(lambda: mounted.status()["fills"], 20, "a fill runs")
    status = mounted.status()
    assert status["source"]["requests"] > 0
    until(lambda: mounted.status()["source"]["bytes"] > status["source"]["bytes"], 20, "bytes grow")


# ---- a model that is removed while somebody reads it

def test_what_a_removed_model_had_fetched_goes_with_its_last_reader(weightfs, folder):
    content = b"".join(models.noise("removed", 32 * MIB))
    with mounts.tmpfs(folder / "disk", "256m") as disk, \
            hostile.HostileOrigin(models.served("m", {"w.safetensors": content})) as source:
        source.faults["m/w.safetensors"] = [hostile.slow(MIB)]
        mounted = weightfs({NAME: source.url("m/")}, store=disk / "store")

        def free():
            status = os.statvfs(mounted.mount)
            return status.f_bavail * status.f_frsize

        before = free()
        descriptor = os.open(mounted.mount / NAME / "w.safetensors", os.O_RDONLY)
        assert os.pread(descriptor, 4096, 0) == content[:4096]
        mounted.cli("rm", NAME)
        partial = mounted.store / "partial"
        assert os.listdir(partial) and free() < before - 24 * MIB, "whoever has it open keeps it"
        assert os.pread(descriptor, 4096, MIB) == content[MIB:MIB + 4096]
        os.close(descriptor)
        until(lambda: not os.listdir(partial), 20, "the partial blob is gone")
        until(lambda: free() > before - 8 * MIB, 5, "its space is free")
        mounted.stop()


# ---- file:// sources

def test_a_plain_directory_as_the_source(weightfs, folder, small, mode):
    plain = models.copy(small, folder / "plain")
    (plain.folder / "weightfs.json").unlink()
    mounted = weightfs({NAME: f"file://{plain.folder}"}, passthrough=mode == "passthrough")
    same_tree(mounted.mount / NAME, small)
    mounted.wait(NAME)
    assert {file.sha256 for file in small.files.values()} == mounted.blobs()
    assert mounted.model(NAME)["snapshot"], "the digests are known now"
    assert same_file(mounted.mount / NAME / small.shards[0], small.path(small.shards[0]))


def test_a_single_file_over_http(weightfs, nginx, small):
    shard = small.shards[0]
    mounted = weightfs({NAME: nginx.url(f"small/{shard}")})
    assert os.listdir(mounted.mount / NAME) == [shard]
    assert same_file(mounted.mount / NAME / shard, small.path(shard))
    mounted.wait(NAME)
    assert mounted.blobs() == {small.files[shard].sha256}


def test_checksums_describe_a_tree_that_has_no_manifest(weightfs, folder, small, origin):
    root = folder / "root"
    root.mkdir(mode=0o755)
    models.write_checksums(models.copy(small, root / "m"))
    mounted = weightfs({NAME: origin(root=root).url("m/")})
    same_tree(mounted.mount / NAME, small)
