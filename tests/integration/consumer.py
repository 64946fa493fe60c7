#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""What runs in the pod: reads one JSON command per line, answers each with one line of JSON.

  {"do": "load", "folder": F}   {relative path: sha256} of everything below F, half of it through mmap
  {"do": "hold", "path": P}     opens and maps P, and keeps both
  {"do": "held"}                sha256 through the held descriptor and the held mapping
  {"do": "drop"}                lets go of them
  {"do": "who"}                 uid, pid and cgroup as seen from inside
An OSError is answered as {"errno": N}.
"""

import hashlib
import json
import mmap
import os
import sys


def load(folder):
    found = {}
    for root, _, names in os.walk(folder, onerror=raise_it):
        for number, name in enumerate(sorted(names)):
            path = os.path.join(root, name)
            with open(path, "rb", buffering=0) as file:
                if number % 2 and os.fstat(file.fileno()).st_size:
                    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
                        digest = hashlib.sha256(view)
                else:
                    digest = hashlib.sha256()
                    while data := file.read(1 << 20):
                        digest.update(data)
            found[os.path.relpath(path, folder)] = digest.hexdigest()
    return found


def raise_it(error):
    raise error


class Consumer:
    def __init__(self):
        self.file = self.view = None

    def answer(self, command):
        action = command["do"]
        if action == "load":
            return load(command["folder"])
        if action == "hold":
            self.file = open(command["path"], "rb", buffering=0)
            self.view = mmap.mmap(self.file.fileno(), 0, prot=mmap.PROT_READ)
            return {}
        if action == "held":
            size = os.fstat(self.file.fileno()).st_size
            return {"read": hashlib.sha256(os.pread(self.file.fileno(), size, 0)).hexdigest(),
                    "mapped": hashlib.sha256(self.view).hexdigest()}
        if action == "drop":
            self.view.close()
            self.file.close()
            return {}
        with open("/proc/self/cgroup") as file:
            return {"uid": os.getuid(), "pid": os.getpid(), "cgroup": file.read()}


def main():
    consumer = Consumer()
    for line in sys.stdin:
        try:
            answer = consumer.answer(json.loads(line))
        except OSError as error:
            answer = {"errno": error.errno, "text": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
