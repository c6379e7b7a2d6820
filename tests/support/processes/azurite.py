"""An Azure blob server: npm's azurite, with one account and one container, in memory."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.support.ports import free_ports
from tests.support.processes.versitygw import is_open
from tests.support.tools import NODE_MODULES
from tests.support.waiting import until

ACCOUNT = "ottlatests"
KEY = base64.b64encode(b"a key that no error may tell, of some length....").decode()
CONTAINER = "segments"
ENVIRONMENT = {"AZURE_STORAGE_ACCOUNT_KEY": KEY}
_VERSION = "2021-08-06"


class AzureServer:
    def __init__(self, port: int) -> None:
        self.port = port

    def url(self, prefix: str, container: str = CONTAINER) -> str:
        return f"az://{ACCOUNT}/{container}/{prefix}?endpoint=http://127.0.0.1:{self.port}/{ACCOUNT}"

    def make_container(self, name: str) -> None:
        """With a request that is signed by the account's key: obstore makes none."""
        path = f"/{ACCOUNT}/{name}"
        date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        signed = f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n/{ACCOUNT}{path}\nrestype:container"
        text = "PUT" + "\n" * 12 + signed
        signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
        headers = {
            "x-ms-date": date,
            "x-ms-version": _VERSION,
            "Authorization": f"SharedKey {ACCOUNT}:{signature}",
            "Content-Length": "0",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("PUT", f"{path}?restype=container", headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 201, body
        finally:
            connection.close()


@contextmanager
def azure_server(directory: Path) -> Iterator[AzureServer]:
    directory.mkdir(exist_ok=True)
    (port,) = free_ports(1)
    words = ["node", str(NODE_MODULES / "azurite" / "dist" / "src" / "blob" / "main.js"), "--blobHost", "127.0.0.1"]
    words += [
        "--blobPort",
        str(port),
        "--inMemoryPersistence",
        "--skipApiVersionCheck",
        "--disableTelemetry",
        "--silent",
    ]
    accounts = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory, env={**os.environ, **accounts}
        )
    try:
        until(lambda: is_open(port) or process.poll() is not None)
        assert process.poll() is None, (directory / "log").read_text(errors="replace")[-4000:]
        server = AzureServer(port)
        server.make_container(CONTAINER)
        yield server
    finally:
        process.kill()
        process.wait()
