"""A client with another security protocol than the listener's is told so at once, and does not wait for its timeout."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import invoke
from tests.server.security.secured import Certificates, plain_jaas

from ottla import Admin, ClientError, Consumer, ConsumerOptions, Producer
from ottla.testing.broker import EmbeddedBroker

AT_ONCE_S = 15.0  # half of the timeout of a command, and a quarter of that of a client; a second is usual
SASL = {"sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN"}
TO_SASL_SSL = "its listener may demand SASL: set security.protocol=SASL_SSL"
TO_SASL = "its listener may demand SASL: set security.protocol=SASL_PLAINTEXT"
TO_TLS = "TLS: set security.protocol=SSL or SASL_SSL"
TO_PLAIN = "is it a plaintext listener"
CASES = {
    ("SASL_SSL", "SSL"): TO_SASL_SSL,
    ("SASL_SSL", "PLAINTEXT"): TO_TLS,
    ("SASL_PLAINTEXT", "PLAINTEXT"): TO_SASL,
    ("SASL_PLAINTEXT", "SSL"): TO_PLAIN,
    ("SSL", "PLAINTEXT"): TO_TLS,
    ("PLAINTEXT", "SSL"): TO_PLAIN,
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module", params=["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def listener(
    request: pytest.FixtureRequest, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The protocol and the address of a node's only listener for clients."""
    protocol = str(request.param)
    settings = certificates.node() | SASL
    settings |= {"listeners": f"{protocol}://127.0.0.1:0", "security.inter.broker.protocol": protocol}
    settings[f"listener.name.{protocol.lower()}.plain.sasl.jaas.config"] = plain_jaas()
    with EmbeddedBroker(tmp_path_factory.mktemp("node"), settings) as broker:
        yield protocol, broker.bootstrap


def cases_of(protocol: str) -> list[tuple[str, str]]:
    return [(ours, told) for (theirs, ours), told in CASES.items() if theirs == protocol]


def test_clients_fail_at_once(listener: tuple[str, str], certificates: Certificates) -> None:
    asyncio.run(_clients_fail(listener, certificates))


async def _clients_fail(listener: tuple[str, str], certificates: Certificates) -> None:
    protocol, bootstrap = listener
    for ours, told in cases_of(protocol):
        security = {"security.protocol": ours} | certificates.ours()
        began_s = time.monotonic()
        with pytest.raises(ClientError, match=told):
            async with Admin(bootstrap, security=security) as admin:
                await admin.topics.names()
        with pytest.raises(ClientError, match=told):
            async with Producer(bootstrap, security=security) as producer:
                await producer.send("orders", b"1")
        with pytest.raises(ClientError, match=told):
            async with Consumer(bootstrap, ConsumerOptions(group_id="billing"), security=security) as consumer:
                await _read(consumer)
        assert time.monotonic() - began_s < AT_ONCE_S


def test_a_command_ends_with_one_line_and_a_hint(
    listener: tuple[str, str], certificates: Certificates, tmp_path: Path
) -> None:
    protocol, bootstrap = listener
    for ours, told in cases_of(protocol):
        settings = {"security.protocol": ours} | certificates.ours()
        path = tmp_path / f"{ours}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        began_s = time.monotonic()
        run = invoke("--command-config", str(path), "topic", "list", "-b", bootstrap)
        assert time.monotonic() - began_s < AT_ONCE_S
        error, hint = run.err.splitlines()
        assert run.code == 1 and error.startswith("error: ") and told in error
        assert hint.startswith("hint: --command-config FILE or --profile NAME say how to connect")


async def _read(consumer: Consumer) -> None:
    consumer.subscribe(["orders"])
    await consumer.poll()
