# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""The nginx of the mount suite with connections that carry so many bytes per second each.

nginx's own limit_rate does not do: it counts per request and in whole seconds, so that a request for less
than one second's worth, such as a part of 8 MiB at 20 MB/s, is not slowed down at all. Here the kernel paces
every connection (SO_MAX_PACING_RATE, socket(7)), whatever requests it carries: the option is set on the
listening socket, which nginx inherits as in an upgrade of its binary (the variable NGINX) and whose accepted
connections inherit the rate. No queueing discipline is needed: TCP has paced by itself since Linux 4.13.
"""

import os
import socket
import subprocess

from origin import CONFIG, NginxOrigin
from waiting import until

SO_MAX_PACING_RATE = 47


class PacedOrigin(NginxOrigin):
    """An NginxOrigin whose `pace` is bytes per second and connection; None does not pace."""

    def __init__(self, root, home, pace=None):
        super().__init__(root, home)
        self.pace = pace

    def start(self):
        config = self.home / "nginx.conf"
        config.write_text(CONFIG.format(home=self.home, root=self.root, port=self.port, rate="", tls=""))
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self.pace:
                listener.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, self.pace)
            listener.bind(("127.0.0.1", self.port))
            listener.listen(511)
            listener.setblocking(False)  # nginx takes that as given of what it inherits
            self.process = subprocess.Popen(
                ["nginx", "-p", str(self.home), "-c", str(config)], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=open(self.home / "stderr.log", "ab"),
                pass_fds=[listener.fileno()], env=os.environ | {"NGINX": f"{listener.fileno()};"})
            until(self._listens, 10, "nginx listens")
