"""A connection of a SASL listener after a failure, while an earlier answer of it waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.server.security.secured import PASSWORDS, log_in, plain_jaas
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.server.net.sasl_connection import SaslConnection
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest

SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
    "connection.failed.authentication.delay.ms": "10",
    "connections.max.reauth.ms": "600000",
}
ADMIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "admin",
    "sasl.password": PASSWORDS["admin"],
}

VALUE = bytes(900 * limits.KIB)
RECORDS = 36
LARGE_BYTES = RECORDS * limits.MIB  # more than the buffers of two sockets hold, and room for all records


def waiting_fetch(topic: str) -> FetchRequest:
    """A fetch that is not answered before a record comes."""
    partition = FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=10 * int(WAIT_S) * 1_000,
        min_bytes=1,
        max_bytes=1_000,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.Topic(topic=topic, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )


def fetch_at_once(topic: str) -> FetchRequest:
    """A fetch of all that the topic has."""
    fetch = waiting_fetch(topic)
    fetch.max_wait_ms, fetch.min_bytes, fetch.max_bytes = 0, 0, 2 * LARGE_BYTES
    fetch.topics[0].partitions[0].partition_max_bytes = 2 * LARGE_BYTES
    return fetch


def creation(topic: str) -> CreateTopicsRequest:
    created = CreateTopicsRequest.CreatableTopic(
        name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    return CreateTopicsRequest(topics=[created], timeout_ms=5_000)


@pytest.mark.parametrize("arrives", ["with", "after"])
def test_nothing_is_served_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrives: str) -> None:
    with (
        EmbeddedBroker(tmp_path, SETTINGS) as broker,
        Blocking(broker.bootstrap, security=ADMIN) as client,
    ):
        assert broker.node is not None
        door = broker.node.connections
        client.admin.topics.create("t", partitions=1)
        with RawConnection(broker.bootstrap) as connection:
            log_in(connection, "alice")
            monkeypatch.setattr(limits, "AUTHENTICATION_S", 1.0)
            wrong = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
            frames = (
                request_frame(waiting_fetch("t"), 11, 10, "raw")
                + request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 1, 11, "raw")
                + request_frame(wrong, 2, 12, "raw")
            )
            another = request_frame(creation("another"), 7, 13, "raw")
            if arrives == "with":
                connection.send(frames + another)
            else:
                connection.send(frames)
                until(lambda: [each for each in door.connections if getattr(each, "_closes_after_answer", False)])
                connection.send(another)
            with pytest.raises((Closed, ConnectionError)):  # although the fetch would wait for longer
                connection.receive()
            until(
                lambda: [each for each in door.connections if str(each.context.principal) == "User:alice"],
                lambda left: not left,
            )
        assert client.admin.topics.names() == ["t"]
        client.close()
        until(lambda: not door.connections)
        assert door.memory.used_bytes == 0


def test_a_refusal_waits_for_a_client_that_reads_slowly(tmp_path: Path) -> None:
    """The answers before it do not fit into the buffers of the sockets: nothing is dropped."""
    with (
        EmbeddedBroker(tmp_path, SETTINGS) as broker,
        Blocking(broker.bootstrap, security=ADMIN) as client,
    ):
        assert broker.node is not None
        door = broker.node.connections
        client.admin.topics.create("t", partitions=1)
        for _ in range(RECORDS):
            client.send("t", VALUE)
        client.flush()
        with RawConnection(broker.bootstrap) as connection:
            log_in(connection, "alice")
            (served,) = [each for each in door.connections if str(each.context.principal) == "User:alice"]
            assert isinstance(served, SaslConnection)
            connection.send(
                request_frame(fetch_at_once("t"), 11, 10, "raw")
                + request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 1, 11, "raw")
                + request_frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2, 12, "raw")
            )
            until(lambda: served.closed or (served._closes_after_answer and not served._slots))
            fetched: Any = connection.decode(FetchRequest.key, 11, connection.receive(), 10)
            assert len(fetched.responses[0].partitions[0].records) >= RECORDS * len(VALUE)
            begun: Any = connection.decode(SaslHandshakeRequest.key, 1, connection.receive(), 11)
            assert begun.error_code == 0
            told: Any = connection.decode(SaslAuthenticateRequest.key, 2, connection.receive(), 12)
            assert told.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            with pytest.raises(Closed):
                connection.receive()
        until(lambda: served.closed)
