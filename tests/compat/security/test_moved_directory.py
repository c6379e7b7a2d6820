"""A directory with SCRAM users and ACLs moves from a real Kafka to Ottla and back: at each stop the users can log in,
and may do what the entries say and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.compat.security.secure_node import PREFIX, SecureNode
from tests.server.security.secured import PASSWORDS
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.waiting import WAIT_S, until

OWN, CLOSED, OTHERS = f"{PREFIX}-own", f"{PREFIX}-closed", "others"
DONE, REFUSED, NO_LOGIN = 0, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION
WAYS = {"SASL_SSL": "SCRAM-SHA-256", "SASL_PLAINTEXT": "SCRAM-SHA-512"}


@pytest.mark.slow
@pytest.mark.tool("data directory of Kafka 4.3.1")
@pytest.mark.feature("ACLs")
def test_users_and_acls_work_at_each_stop(java_tools: None, tmp_path: Path) -> None:
    node = SecureNode("kafka", tmp_path)
    theirs = node.node
    assert isinstance(theirs, RealKafka)
    try:
        node.start()
        for topic in (OWN, CLOSED, OTHERS):
            node.create(topic)
        allowed = {OWN: DONE, CLOSED: DONE, OTHERS: REFUSED}
        until(lambda: written(node, "alice", PASSWORDS["alice"], allowed), lambda found: found == allowed)
        theirs.stop()
        ours = OttlaNode.in_place_of(theirs)
        node.node = ours.start()
        try:
            check(node, "alice", PASSWORDS["alice"], allowed)
            change(node)
            changed = {OWN: DONE, CLOSED: REFUSED, OTHERS: REFUSED}
            until(lambda: written(node, "alice", "changed", changed), lambda found: found == changed)
            check(node, "alice", "changed", changed)
        finally:
            ours.stop()
        node.node = theirs.start()
        check(node, "alice", "changed", changed)
        check(node, "bob", "bob-secret", {OWN: REFUSED, CLOSED: REFUSED, OTHERS: DONE})
    finally:
        theirs.kill()


def change(node: SecureNode) -> None:
    """Give alice another password, take a topic from her, and let a new user write to that of others."""
    for user, password in (("alice", "changed"), ("bob", "bob-secret")):
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            one = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4_096), password.encode())
            node.admin.alter_user_scram_credentials([one])[user].result(WAIT_S)
    acls = [
        AclBinding(
            ResourceType.TOPIC, name, ResourcePatternType.LITERAL, principal, "*", AclOperation.WRITE, permission
        )
        for name, principal, permission in (
            (CLOSED, "User:alice", AclPermissionType.DENY),
            (OTHERS, "User:bob", AclPermissionType.ALLOW),
        )
    ]
    for outcome in node.admin.create_acls(acls).values():
        outcome.result(WAIT_S)


def check(node: SecureNode, user: str, password: str, expected: dict[str, int]) -> None:
    for listener in WAYS:
        assert written(node, user, password, expected, listener) == expected
        assert set(written(node, user, "wrong", expected, listener).values()) == {NO_LOGIN}


def written(
    node: SecureNode, user: str, password: str, topics: Iterable[str], listener: str = "SASL_SSL"
) -> dict[str, int]:
    """The error code of one record that the user writes to each topic, or of the login."""
    security = node.security(listener, WAYS[listener])._replace(user=user, password=password)
    codes: dict[str, int] = {}

    def failed(error: KafkaError) -> None:
        if error.code() == NO_LOGIN:
            codes.update(dict.fromkeys(topics, NO_LOGIN))

    def answered(error: KafkaError | None, message: Message) -> None:
        codes.setdefault(str(message.topic()), DONE if error is None else error.code())

    producer = Producer(
        security.librdkafka() | {"bootstrap.servers": node.at(listener), "log_level": 0, "error_cb": failed}
    )
    for topic in topics:
        producer.produce(topic, b"x", on_delivery=answered)
    until(lambda: (producer.poll(0.05), len(codes)), lambda seen: seen[1] == len(set(topics)))
    producer.purge()
    return codes
