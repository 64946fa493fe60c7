# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Reading /proc/self/mountinfo, mounting scratch filesystems, and never leaving one behind."""

import contextlib
import os
import pathlib
import re
import subprocess


def decode(text):
    """Mount tables write space, tab, newline and backslash in octal."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def table():
    """One dict per mount: point, kind, options (a set), device ("major:minor"), source."""
    rows = []
    with open("/proc/self/mountinfo") as file:
        for line in file:
            left, right = line.rstrip("\n").split(" - ", 1)
            fields, (kind, source, supers) = left.split(" "), right.split(" ")
            rows.append({"point": decode(fields[4]), "kind": kind, "source": decode(source),
                         "device": fields[2],
                         "options": set(fields[5].split(",")) | set(supers.split(","))})
    return rows


def at(point):
    """The mounts at exactly this path, lowest first."""
    return [row for row in table() if row["point"] == str(point)]


def below(folder):
    prefix = str(folder).rstrip("/") + "/"
    return [row for row in table() if row["point"].startswith(prefix)]


def detach(point):
    """Lazily unmounts everything at the path; nothing happens where nothing is mounted."""
    while at(point):
        subprocess.run(["umount", "-l", str(point)], check=True)


def detach_below(folder):
    for row in reversed(below(folder)):
        subprocess.run(["umount", "-l", row["point"]], check=False)


@contextlib.contextmanager
def mounted(point, *arguments):
    """mount(8) with these arguments at `point` for the length of a with block."""
    pathlib.Path(point).mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *map(str, arguments), str(point)], check=True)
    try:
        yield pathlib.Path(point)
    finally:
        subprocess.run(["umount", "-l", str(point)], check=False)


def tmpfs(point, size="64m"):
    return mounted(point, "-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs")


@contextlib.contextmanager
def loop(folder, megabytes, *make):
    """A filesystem of its own, from a sparse file, on a loop device."""
    image = pathlib.Path(folder) / "image"
    with open(image, "wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run([*make, str(image)], check=True)
    with mounted(pathlib.Path(folder) / "disk", "-o", "loop", image) as point:
        yield point


def ext4(folder, megabytes):
    return loop(folder, megabytes, "mkfs.ext4", "-q", "-F", "-m", "0")


def xfs(folder, megabytes):
    """With reflinks. 300 MB is the least that mkfs.xfs takes."""
    return loop(folder, megabytes, "mkfs.xfs", "-q", "-f", "-m", "reflink=1")


def kernel_has(kind):
    """Asks for a mount that cannot succeed, for which the kernel loads the module that it needs."""
    subprocess.run(["mount", "-t", kind, "/dev/null", "/"], check=False, capture_output=True)
    return kind in pathlib.Path("/proc/filesystems").read_text().split()


@contextlib.contextmanager
def overlay(folder):
    """An overlayfs whose upper layer lies in `folder`, which must not be on overlayfs itself."""
    folder = pathlib.Path(folder)
    for name in ("lower", "upper", "work"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        os.chmod(folder / name, 0o755)
    options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
    with mounted(folder / "merged", "-t", "overlay", "-o", options, "overlay") as point:
        yield point


def drop_caches():
    """Cold page cache for everything that is clean."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3\n")
