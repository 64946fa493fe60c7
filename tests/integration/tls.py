# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A certificate authority of our own and a server certificate for loopback, made by openssl(1)."""

import pathlib
import subprocess


class Certificates:
    """ca: what a client must trust; chain and key: what a server presents."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.ca, self.chain, self.key = folder / "ca.pem", folder / "server.pem", folder / "server.key"
        names = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:127.0.0.2"
        (folder / "names").write_text(names + "\n")
        self._run(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key",
                  "-out", "ca.pem", "-days", "2", "-subj", "/CN=weightfs test authority")
        self._run(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key",
                  "-out", "server.csr", "-subj", "/CN=localhost")
        self._run(folder, "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                  "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem")

    @staticmethod
    def _run(folder, *arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
