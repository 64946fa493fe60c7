# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The highest that something has been in a block, looked at again and again."""

import threading


class Highest:
    def __init__(self, sample):
        self.sample, self.most, self.samples = sample, 0, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._over.wait(0.01):
            self.most = max(self.most, self.sample())
            self.samples += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
