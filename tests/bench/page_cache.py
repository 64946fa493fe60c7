# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The page cache of single files: dropping them from it and bringing them into it."""

import ctypes
import itertools
import mmap
import os
import pathlib

from waiting import until

PATIENT_TRIES = 20
DROP_CACHES = pathlib.Path("/proc/sys/vm/drop_caches")

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def forget(*files):
    """Drops these files from the page cache; no others, unless the kernel will not do it one by one."""
    size = sum(path.stat().st_size for path in files)
    tries = itertools.count()

    def forgotten():
        if next(tries) > PATIENT_TRIES:
            DROP_CACHES.write_text("1")
        for path in files:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(descriptor)  # what is dirty stays
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
        return sum(map(resident, files)) <= size / 100

    # A page that a processor still holds in a batch stays the first time.
    until(forgotten, 10, "the files leave the page cache", interval=0.1)


def warm(files):
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


def resident(path):
    """Bytes of the file that are in the page cache; mincore(2) tells them to root."""
    size = os.stat(path).st_size
    if not size:
        return 0
    descriptor = os.open(path, os.O_RDONLY)
    try:
        view = LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    finally:
        os.close(descriptor)
    if view == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap", str(path))
    try:
        pages = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
        if LIBC.mincore(view, size, pages) != 0:
            raise OSError(ctypes.get_errno(), "mincore", str(path))
        return sum(page & 1 for page in pages.raw) * mmap.PAGESIZE
    finally:
        LIBC.munmap(view, size)
