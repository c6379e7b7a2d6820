"""The secured broker of the pytest plugin: its users get in with any client, and nobody else does."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from tests.support.processes.registry import record
from tests.support.waiting import WAIT_S

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import AuthenticationError, ClientError
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.model.errors import ApiError, ErrorCode
from ottla.testing.secure import SecureBroker


def told(settings: dict[str, str], topic: str) -> KafkaError | None:
    """Write a record with librdkafka; return the error, or None."""
    errors: list[KafkaError | None] = []
    producer = Producer(settings)
    producer.produce(topic, b"by librdkafka", callback=lambda error, _: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    return errors[0]


def consumed(settings: dict[str, str], group: str, topic: str) -> bytes:
    consumer = Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        found = consumer.poll(WAIT_S)
        assert found is not None and found.error() is None, found
        return bytes(found.value())
    finally:
        consumer.close()


def test_both_clients_write_and_read(ottla_secure_broker: SecureBroker) -> None:
    broker = ottla_secure_broker
    assert told(broker.client_settings(), "orders") is None
    with Blocking(broker.bootstrap, security=broker.security) as client:
        assert [each.value for each in client.read("orders")] == [b"by librdkafka"]
        client.send("people", b"by ottla")
    assert consumed(broker.client_settings(), "g", "people") == b"by ottla"


def test_nobody_else_gets_in(ottla_secure_broker: SecureBroker) -> None:
    broker = ottla_secure_broker
    with Blocking(broker.bootstrap) as client, pytest.raises(ClientError):
        client.send("t", b"")
    guess = {**broker.security, "sasl.password": "guess"}
    with Blocking(broker.bootstrap, security=guess) as client, pytest.raises(AuthenticationError):
        client.send("t", b"")


def test_users_may_do_what_they_are_allowed(ottla_secure_broker: SecureBroker) -> None:
    broker = ottla_secure_broker
    assert broker.add_user("alice", "alice's password") == "alice's password"
    broker.add_user("bob")
    with Blocking(broker.bootstrap, security=broker.security) as admin:
        admin.admin.topics.create("orders", partitions=1)
    refused = told(broker.client_settings("alice"), "orders")
    assert refused is not None and refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    broker.allow("alice", "Write", "Describe", topic="orders")
    broker.allow("bob", "Read", topic="ord", group="bob", prefixed=True)
    assert told(broker.client_settings("alice"), "orders") is None
    assert consumed(broker.client_settings("bob"), "bob-1", "orders") == b"by librdkafka"
    with Blocking(broker.bootstrap, security=broker.security_of("alice")) as alice:
        alice.send("orders", b"by ottla")
        with pytest.raises(ApiError) as denied:
            list(alice.read("orders"))
    assert denied.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(ValueError, match="there is no operation 'Reed'"):
        broker.allow("bob", "Reed", topic="orders")


def test_a_restart_keeps_users_and_address(ottla_secure_broker: SecureBroker) -> None:
    broker = ottla_secure_broker
    broker.add_user("alice")
    broker.allow("alice", "All", topic="orders")
    before = broker.client_settings("alice")
    broker.restart()
    assert broker.client_settings("alice") == before
    assert told(before, "orders") is None


def test_the_registry_takes_the_same_users(ottla_secure_broker: SecureBroker) -> None:
    broker = ottla_secure_broker
    assert broker.registry.url.startswith("https://")
    with_confluent = SchemaRegistryClient(broker.registry_client_settings())
    schema_id = with_confluent.register_schema("orders-value", Schema(record("R"), "AVRO"))
    with_ottla = SchemaRegistry(RegistryOptions.of(broker.registry.url, broker.registry_security_of()))
    assert with_ottla.by_id(schema_id).text == with_confluent.get_schema(schema_id).schema_str
    broker.add_user("alice")
    alice = SchemaRegistryClient(broker.registry_client_settings("alice"))
    assert alice.get_subjects() == []
    anonymous = dict(broker.registry_client_settings())
    del anonymous["basic.auth.user.info"]
    stranger = SchemaRegistryClient(anonymous)
    with pytest.raises(SchemaRegistryError) as refused:
        stranger.get_subjects()
    assert refused.value.http_status_code == 401
    for client in (with_confluent, alice, stranger):
        client.close()


def test_what_can_have_no_effect_is_refused(ottla_secure_broker: SecureBroker, tmp_path: Path) -> None:
    broker = ottla_secure_broker
    cases: tuple[tuple[tuple[str, ...], dict[str, str], str], ...] = (
        ((), {"topic": "x"}, "say what is allowed"),
        (("Write",), {}, "nobody needs write on a cluster: .*; topic=, group= name others"),
        (("Write",), {"topic": "x", "group": "y"}, "nobody needs write on a group"),
        (("Any",), {"topic": "x"}, "there is no operation 'Any'"),
        (("Read",), {"topic": ""}, "the name of the topic is empty"),
        (("Read",), {"topic": "no topic"}, "no topic can have the name 'no topic'"),
    )
    for operations, named, said in cases:
        with pytest.raises(ValueError, match=said):
            broker.allow("alice", *operations, topic=named.get("topic"), group=named.get("group"))
    with pytest.raises(ValueError, match=r"there is one cluster: prefixed=True is for names"):
        broker.allow("alice", "Create", prefixed=True)
    with pytest.raises(ValueError, match="the name of the user is 'alice'"):
        broker.allow("User:alice", "Read", topic="x")
    with pytest.raises(ValueError, match="the password is empty"):
        broker.add_user("eve", "")
    for settings in (broker.client_settings, broker.security_of, broker.java_settings, broker.registry_security_of):
        with pytest.raises(ValueError, match=r"no user 'eve' \(there is admin\): add_user\('eve'\) adds it"):
            settings("eve")
    with pytest.raises(ValueError, match=r"has ACLs: authorizer\.class\.name cannot be empty"):
        SecureBroker(tmp_path / "open", {"authorizer.class.name": ""})
    with pytest.raises(ValueError, match="times is at least 1, or None for all, not -3"):
        broker.fail(api="Produce", close=True, times=-3)
