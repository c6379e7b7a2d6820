"""An S3 server: versitygw, whose buckets are folders of a directory."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import free_ports
from tests.support.tools import VERSITYGW
from tests.support.waiting import until

BUCKET = "segments"
ACCESS_KEY = "ottla-tests"
SECRET_KEY = "a-secret-that-no-error-may-tell"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}


class S3Server:
    """It keeps its port and its objects when it is killed and started again."""

    def __init__(self, directory: Path, certificate: tuple[Path, Path] | None = None) -> None:
        """With a certificate and its key it speaks TLS."""
        self._certificate = certificate
        (self.port,) = free_ports(1)
        self.directory = directory
        (directory / "objects" / BUCKET).mkdir(parents=True)
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, prefix: str, port: int | None = None, bucket: str = BUCKET) -> str:
        scheme = "http" if self._certificate is None else "https"
        return f"s3://{bucket}/{prefix}?region=us-east-1&endpoint={scheme}://127.0.0.1:{port or self.port}"

    def start(self) -> S3Server:
        words = [str(VERSITYGW), "--port", f"127.0.0.1:{self.port}"]
        if self._certificate is not None:
            words += ["--cert", str(self._certificate[0]), "--key", str(self._certificate[1])]
        words += ["posix", str(self.directory / "objects")]
        keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **keys}
            )
        until(lambda: is_open(self.port) or self._process is None or self._process.poll() is not None)
        assert self._process.poll() is None, (self.directory / "log").read_text(errors="replace")[-4000:]
        return self

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def is_open(port: int) -> bool:
    with socket.socket() as trial:
        trial.settimeout(1)
        return trial.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def s3_server(directory: Path, certificate: tuple[Path, Path] | None = None) -> Iterator[S3Server]:
    server = S3Server(directory, certificate)
    try:
        yield server.start()
    finally:
        server.kill()
