"""Two tenants of one node. The neighbour, globex, is at work: its group has a member, its transaction is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.server.security.secured import plain_jaas
from tests.support.waiting import WAIT_S

from ottla.client.blocking.blocking import Blocking
from ottla.model.tenancy.tenants import TenantLimits
from ottla.testing.broker import EmbeddedBroker

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PASSWORDS = {"admin": "a", "acme.app": "b", "globex.app": "c"}
TOPIC, GROUP, TRANSACTION, SECRET = "globex.orders", "globex.readers", "globex.writer", "globex-secret"
A_DAY_MS = 86_400_000


def security_of(user: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORDS[user],
    }


class Neighbours(NamedTuple):
    broker: EmbeddedBroker
    admin: Blocking

    def dump(self) -> Any:
        """Everything that the cluster stores: its metadata, the bounds of all logs, groups and transactions."""
        node, admin = self.broker.node, self.admin.admin
        assert node is not None
        state = node.metadata.state
        logs = {
            (each.topic, each.index): (each.log.log_start_offset, each.log.next_offset)
            for each in node.rooms.storage.partitions.opened()
        }
        topics = {name: (topic.id, list(topic.partitions)) for name, topic in state.topics.items()}
        tokens = {key: each for key, each in state.tokens.items() if each.owner == "User:globex.app"}
        kept = (state.configs, state.quotas, state.acls, state.scram, tokens, state.features)
        groups = {each.group_id: admin.groups.describe(each.group_id) for each in admin.groups.all()}
        offsets = {group: admin.groups.offsets(group) for group in groups}
        ids = [each.transactional_id for each in admin.transactions.all()]
        transactions = {each: admin.transactions.describe(each) for each in ids}
        return topics, [dict(each) for each in kept], logs, groups, offsets, transactions


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbours]:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas("admin", PASSWORDS),
        "authorizer.class.name": STANDARD,
        "super.users": "User:admin",
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "delegation.token.secret.key": "one that is long enough",
    }
    with (
        EmbeddedBroker(tmp_path_factory.mktemp("tenants"), settings) as running,
        Blocking(running.bootstrap, security=security_of("admin")) as admin,
    ):
        for tenant in ("acme", "globex"):
            admin.admin.tenants.create(tenant, TenantLimits(-1, -1, -1))
            admin.admin.tenants.add_user(tenant, f"{tenant}.app", {"request_percentage": 1000})
        admin.admin.users.set_password("globex.app", "c")
        with Blocking(running.bootstrap, security=security_of("globex.app")) as globex:
            globex.admin.tokens.create()
        with at_work(running, "globex"):
            yield Neighbours(running, admin)


@contextmanager
def at_work(broker: EmbeddedBroker, tenant: str) -> Iterator[None]:
    """What a tenant's user can do within the tenant: it creates a topic, writes in transactions, reads in a group. At
    the end a transaction is open, and the group has a member.
    """
    own = security_of(f"{tenant}.app") | {"bootstrap.servers": broker.bootstrap}
    admin = AdminClient(own)
    (created,) = admin.create_topics([NewTopic(f"{tenant}.orders", 1, 1)]).values()
    created.result(WAIT_S)
    writing = {"transactional.id": f"{tenant}.writer", "transaction.timeout.ms": 900_000}
    producer = confluent_kafka.Producer(own | writing)
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(f"{tenant}.orders", f"{tenant}-secret".encode())
    producer.commit_transaction(WAIT_S)
    patience = {"session.timeout.ms": 600_000, "max.poll.interval.ms": A_DAY_MS, "enable.auto.commit": False}
    reading = {"group.id": f"{tenant}.readers", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(own | patience | reading)
    consumer.subscribe([f"{tenant}.orders"])
    record = consumer.poll(WAIT_S)
    assert record is not None and record.value() == f"{tenant}-secret".encode()
    consumer.commit(asynchronous=False)
    producer.begin_transaction()
    producer.produce(f"{tenant}.orders", b"never committed")
    assert producer.flush(WAIT_S) == 0
    yield
    producer.abort_transaction(WAIT_S)
    consumer.close()
