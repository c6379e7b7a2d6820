"""A server.properties with certificates, keys and authorities in it: a real Kafka and Ottla read the same file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compat.security.round_trips import our_round_trip
from tests.support.certificates import Authority
from tests.support.ports import free_ports
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode


@pytest.mark.parametrize("kind", ["kafka", "ottla"])
def test_pem_in_a_properties_file(kind: str, java_tools: None, tmp_path: Path) -> None:
    """Lines end with `\\n`, as in a value of such a file; the client shows a certificate. The key has no password,
    because Java 17 cannot read one that today's OpenSSL encrypts.
    """
    authority = Authority()
    identity, (port,) = authority.node(), free_ports(1)
    kafka = RealKafka(tmp_path)
    own = kafka.properties
    kafka.properties |= {
        "listeners": f"{own['listeners']},SSL://127.0.0.1:{port}",
        "advertised.listeners": f"{own['advertised.listeners']},SSL://127.0.0.1:{port}",
        "listener.security.protocol.map": f"{own['listener.security.protocol.map']},SSL:SSL",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": in_one_line(identity.chain_pem),
        "ssl.keystore.key": in_one_line(identity.key_pem()),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": in_one_line(authority.pem),
    }
    client = {
        "security.protocol": "SSL",
        "ssl.truststore.certificates": authority.pem,
    }
    alice = authority.client("alice")
    client |= {"ssl.keystore.certificate.chain": alice.chain_pem, "ssl.keystore.key": alice.key_pem()}
    node: RealKafka | OttlaNode = kafka
    if kind == "ottla":
        kafka.prepare()
        node = OttlaNode.in_place_of(kafka)
    node.start()
    try:
        our_round_trip(f"127.0.0.1:{port}", "t", client)
    finally:
        node.stop()


def in_one_line(pem: str) -> str:
    return pem.replace("\n", "\\n")
