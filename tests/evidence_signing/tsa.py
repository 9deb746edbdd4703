"""A time stamp authority of the test: a certificate authority, a server certificate, and OpenSSL behind HTTP."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CONFIG = """
[tsa]
default_tsa = here
[here]
serial = {folder}/serial
signer_cert = {folder}/tsa.pem
signer_key = {folder}/tsa.key
default_policy = 1.2.3.4.1
signer_digest = sha256
digests = sha256
accuracy = secs:1
ess_cert_id_chain = no
"""
EXTENSIONS = "extendedKeyUsage=critical,timeStamping\nbasicConstraints=critical,CA:false\n"


def openssl(*arguments: str, folder: Path) -> None:
    """Run OpenSSL; an error of it is the test's."""
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


@dataclass
class Authority:
    """Where it answers, whom it is trusted by, and how it behaves: ``status``, ``answer`` instead of a stamp."""

    url: str
    roots: Path
    folder: Path
    status: int = 200
    answer: bytes | None = None
    asked: list[bytes] = field(default_factory=list)

    def stamp(self, query: bytes) -> bytes:
        """The answer to a query."""
        self.asked.append(query)
        if self.answer is not None:
            return self.answer
        (self.folder / "query").write_bytes(query)
        openssl("ts", "-reply", "-config", "tsa.cnf", "-queryfile", "query", "-out", "reply", folder=self.folder)
        return (self.folder / "reply").read_bytes()


def make_certificates(folder: Path) -> None:
    """A root, and a certificate under it that may only stamp."""
    (folder / "ext").write_text(EXTENSIONS)
    (folder / "serial").write_text("01\n")
    (folder / "tsa.cnf").write_text(CONFIG.format(folder=folder))
    new = ("-newkey", "rsa:2048", "-nodes")
    openssl(
        "req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj", "/CN=Root", folder=folder
    )
    openssl("req", "-new", *new, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=Stamps", folder=folder)
    openssl(
        "x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
        "-extfile", "ext", "-out", "tsa.pem", folder=folder,
    )  # fmt: skip


@contextmanager
def authority(folder: Path) -> Iterator[Authority]:
    """Serve until the block ends."""
    make_certificates(folder)
    found: list[Authority] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["Content-Length"]))
            data = found[0].stamp(query)
            self.send_response(found[0].status)
            if found[0].status == 302:
                self.send_header("Location", found[0].url)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.append(Authority(f"http://127.0.0.1:{server.server_port}/", folder / "ca.pem", folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found[0]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
