"""Dead letters where they are placed: they stay in their tenant, count against its storage limit, and none is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server.share_talk import REJECT, SMALL, Queue
from tests.server.talk import produce
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource, ResourceType
from ottla.model.tenancy.tenants import TenantLimits
from ottla.records.build import build_batch
from ottla.testing.broker import EmbeddedBroker

CONTRACT = {"ottla.schema.validation": "id", "ottla.schema.validation.action": "dlq"}
DLQ = "ottla.schema.validation.dlq"
FREE = TenantLimits(-1, -1, -1)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("letters"), SMALL) as running:
        yield running


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Blocking]:
    with Blocking(broker.bootstrap) as client:
        yield client


@pytest.fixture
def connection(broker: EmbeddedBroker) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as connection:
        yield connection


def end_of(broker: EmbeddedBroker, topic: str) -> int:
    assert broker.node is not None
    if topic not in broker.node.metadata.state.topics:
        return -1
    return broker.node.rooms.storage.partitions.find(topic, 0).log.next_offset


def write(connection: RawConnection, topic: str) -> int:
    """Write a record that breaks any contract; return the error when nothing is being made or read any more."""
    codes = (produce(connection, topic, build_batch([(b"k", b"x" * 1000)]))[0] for _ in range(1_000))
    return next(code for code in codes if code != ErrorCode.NOT_ENOUGH_REPLICAS)


def test_letters_named_before_there_was_a_tenant(
    broker: EmbeddedBroker, client: Blocking, connection: RawConnection
) -> None:
    client.admin.topics.create("victim.orders", partitions=1)
    client.admin.topics.create("early.src", partitions=1, configs=CONTRACT | {DLQ: "victim.orders"})
    client.admin.topics.create("early.make", partitions=1, configs=CONTRACT | {DLQ: "victim.made"})
    assert write(connection, "early.src") == 0
    assert end_of(broker, "victim.orders") == 1, "without tenants a letter may go anywhere"
    client.admin.tenants.create("early", FREE)
    until(lambda: write(connection, "early.src") == ErrorCode.POLICY_VIOLATION)
    before = end_of(broker, "victim.orders"), end_of(broker, "early.src")
    assert write(connection, "early.src") == write(connection, "early.make") == ErrorCode.POLICY_VIOLATION
    assert (end_of(broker, "victim.orders"), end_of(broker, "early.src")) == before
    assert end_of(broker, "victim.made") == -1
    client.admin.configs.set(Resource(ResourceType.TOPIC, "early.src"), {DLQ: "early.dead"})
    until(lambda: write(connection, "early.src") == 0)
    assert end_of(broker, "early.dead") == 1


@pytest.mark.parametrize(
    ("tenant", "prefixes"), [("reading", ("", "reading.")), ("read", ("read.", "")), ("both", ("read.", "both."))]
)
def test_letters_of_a_share_group(
    broker: EmbeddedBroker, client: Blocking, connection: RawConnection, tenant: str, prefixes: tuple[str, str]
) -> None:
    """They belong to the tenant of the group, or else of the topic. The record of a refused letter is not given up."""
    graves, own = f"victim.graves-of-{tenant}", f"{tenant}.graves"
    with Queue(broker, connection, tenants=prefixes, ottla_share_dlq_topic=graves) as queue:
        queue.put(b"bad")
        member = queue.join()
        assert member.poll() == [(0, 0, 1)]
        client.admin.tenants.create(tenant, FREE)
        assert broker.node is not None
        tenants = broker.node.rooms.tenants
        until(lambda: tenant in tenants._limits)
        assert member.acknowledge((0, 0, [REJECT])) == ErrorCode.POLICY_VIOLATION
        assert end_of(broker, graves) == -1
        client.admin.configs.set(Resource(ResourceType.GROUP, queue.group), {"ottla.share.dlq.topic": own})
        until(lambda: member.acknowledge((0, 0, [REJECT])) == 0)
        assert end_of(broker, own) == 1


def test_letters_count_against_the_storage_limit(
    broker: EmbeddedBroker, client: Blocking, connection: RawConnection
) -> None:
    client.admin.topics.create("full.dead", partitions=1)
    client.admin.topics.create("outside", partitions=1, configs=CONTRACT | {DLQ: "full.dead"})
    client.admin.tenants.create("full", TenantLimits(3_000, -1, -1))
    assert write(connection, "outside") == 0
    until(lambda: write(connection, "outside") == ErrorCode.POLICY_VIOLATION)
    before = end_of(broker, "full.dead"), end_of(broker, "outside")
    assert write(connection, "outside") == ErrorCode.POLICY_VIOLATION
    assert (end_of(broker, "full.dead"), end_of(broker, "outside")) == before
    client.admin.tenants.set_limits("full", FREE)
    until(lambda: write(connection, "outside") == 0)


def test_tenants_whose_topics_could_collide(client: Blocking) -> None:
    client.admin.tenants.create("a", FREE)
    client.admin.tenants.create("b_c_d", FREE)
    for name, other in (("a_b", "a"), ("b", "b_c_d"), ("b_c", "b_c_d")):
        with pytest.raises(ApiError, match=f"tenant {name} cannot be beside tenant {other}"):
            client.admin.tenants.create(name, FREE)
        with pytest.raises(ApiError, match=f"tenant {name} cannot be beside tenant {other}"):
            client.admin.tenants.set_limits(name, FREE)  # the controller refuses it as well
    client.admin.tenants.set_limits("a", TenantLimits(-1, 5, -1))
    for name in ("ab", "a-b", "b_cd", "b_c_"):
        client.admin.tenants.create(name, FREE)
