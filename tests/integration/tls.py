# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""A certificate authority of our own and what it vouches for, made by openssl(1)."""

import dataclasses
import pathlib
import ssl
import subprocess


@dataclasses.dataclass
class Endpoint:
    """What a server presents, and what it wants of its clients."""
    chain: pathlib.Path
    key: pathlib.Path
    client_ca: pathlib.Path | None = None     # clients must have a certificate of this authority
    newest: ssl.TLSVersion | None = None      # the newest version that it speaks

    def context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain, self.key)
        if self.client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.client_ca)
        if self.newest:
            context.set_ciphers("DEFAULT@SECLEVEL=0")  # else OpenSSL itself does without what is old
            context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, self.newest
        return context


class Certificates(Endpoint):
    """ca: what a client must trust; chain and key: what a server on loopback presents."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ca = self.folder / "ca.pem"
        (self.folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1,IP:127.0.0.2\n")
        self._run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key",
                  "-out", "ca.pem", "-days", "2", "-subj", "/CN=weightfs test authority")
        super().__init__(*self.made("server"))

    def made(self, name, days=2):
        """A certificate of the authority, and its key, for a server on loopback or for a client."""
        self._run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key",
                  "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self._run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                  "-CAcreateserial", "-days", str(days), "-extfile", "names", "-out", f"{name}.pem")
        chain, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        key.chmod(0o644)  # the daemon's user is another one
        return chain, key

    def expired(self):
        return Endpoint(*self.made("expired", days=-1))

    def mutual(self):
        """A server that talks to none but those who have a certificate of the authority."""
        return Endpoint(self.chain, self.key, client_ca=self.ca)

    def no_newer_than(self, version):
        return Endpoint(self.chain, self.key, newest=version)

    def _run(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)
