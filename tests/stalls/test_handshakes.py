"""Bursts of TLS handshakes: no turn of the loop is long, also with a large key, and no connection has a thread."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of
from tests.support.waiting import WAIT_S

CLIENTS = 120
ADDRESSES = 4  # of the clients: one address has at most 64 handshakes
KEYS = {
    "EC P-256": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "RSA 4096": ["RSA", "-pkeyopt", "rsa_keygen_bits:4096"],
}


def self_signed(directory: Path, kind: str) -> dict[str, str]:
    """The settings of a node with a key of this kind, and a certificate that it signed itself."""
    algorithm, *options = KEYS[kind]
    key, certificate = directory / "node.key", directory / "node.crt"
    words = ["-x509", "-newkey", algorithm, *options, "-nodes", "-subj", "/CN=node", "-days", "9"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", *words, *names], check=True, capture_output=True)
    store = directory / "node.pem"
    store.write_text(key.read_text() + certificate.read_text())
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}


@pytest.mark.parametrize("kind", KEYS)
def test_a_burst_of_handshakes(kind: str, tmp_path: Path) -> None:
    settings = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"} | self_signed(tmp_path, kind)
    context = ssl.create_default_context(cafile=str(tmp_path / "node.crt"))
    with MeasuredNode(tmp_path / "data", settings) as node:

        def measure() -> Callback:
            return node.cost(lambda: asyncio.run(connect(node.bootstrap, context, threads.append)))

        threads: list[int] = []
        before = threading.active_count()
        worst = best_of(measure)
        assert worst.cpu_ms <= BUDGET_MS, worst
        workers = node.node.runtime.executor._max_workers  # type: ignore[union-attr]
        assert max(threads) <= before + workers < CLIENTS


async def connect(bootstrap: str, context: ssl.SSLContext, note: Callable[[int], None]) -> None:
    """Clients that connect at once and stay; how many threads the process has then is noted."""
    host, _, port = bootstrap.rpartition(":")

    async def one(number: int) -> asyncio.StreamWriter:
        source = (f"127.0.5.{1 + number % ADDRESSES}", 0)
        _, writer = await asyncio.open_connection(host, int(port), ssl=context, local_addr=source)
        return writer

    async with asyncio.timeout(WAIT_S):
        writers = await asyncio.gather(*map(one, range(CLIENTS)))
        note(threading.active_count())
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers))
