"""The events of groups, asked of a real node whose members are stock clients; and who is told of that API."""

import asyncio

import pytest
from confluent_kafka import Consumer
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.client.admin import Admin
from ottla.client.admin.group_events import GroupPast, PastEvent
from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.api_table import SERVED
from ottla.server.handlers.cluster.api_versions import TELEMETRY
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.api import FIRST_OWN_KEY
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest


def past(broker: EmbeddedBroker, group: str) -> GroupPast:
    async def ask() -> GroupPast:
        async with Admin(broker.bootstrap) as admin:
            return await admin.groups.events(group)

    return asyncio.run(ask())


def events(broker: EmbeddedBroker, *kinds: str) -> list[PastEvent]:
    return [each for each in past(broker, "shop").events if not kinds or each.kind in kinds]


def member(broker: EmbeddedBroker, protocol: str, **settings: object) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "shop",
            "client.id": "reader",
            "group.protocol": protocol,
            **settings,
        }
    )
    consumer.subscribe(["orders"])
    until(lambda: consumer.poll(0.1) or consumer.assignment(), bool)
    return consumer


@pytest.fixture
def orders(ottla_broker: EmbeddedBroker) -> EmbeddedBroker:
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create("orders", partitions=2)
    return ottla_broker


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_member_that_comes_and_goes(orders: EmbeddedBroker, protocol: str) -> None:
    before_ms = orders.clock.now_ms()
    consumer = member(orders, protocol)
    told = until(lambda: past(orders, "shop"), lambda found: found.events[-1].kind == "rebalance_ended")
    kinds = [each.kind for each in told.events]
    assert kinds == ["joined", "rebalance_began", *(["assigned"] if protocol == "consumer" else []), "rebalance_ended"]
    joined, ended = told.events[0], told.events[-1]
    assert (joined.client_id, joined.host, joined.members) == ("reader", "127.0.0.1", 1)
    assert ended.duration_ms is not None and told.node_id == 1
    assert before_ms <= joined.at_ms <= ended.at_ms <= told.now_ms
    consumer.close()
    left, empty = until(lambda: events(orders, "left", "empty"), lambda found: len(found) == 2)
    assert (left.kind, left.client_id, empty.kind, empty.members) == ("left", "reader", "empty", 0)


@pytest.mark.parametrize(
    ("protocol", "setting", "value"),
    [("classic", "session.timeout.ms", 45_000), ("consumer", "consumer.session.timeout.ms", 45_000)],
)
def test_session_that_ends(orders: EmbeddedBroker, protocol: str, setting: str, value: int) -> None:
    consumer = member(orders, protocol)
    until(lambda: events(orders, "rebalance_ended"), bool)
    orders.clock.advance("46s")
    (event,) = until(lambda: events(orders, "timed_out"), bool)
    assert (event.client_id, event.setting, event.setting_value) == ("reader", setting, value)
    consumer.close()


def test_topic_that_grows(orders: EmbeddedBroker) -> None:
    consumer = member(orders, "consumer")
    with Blocking(orders.bootstrap) as client:
        client.admin.topics.add_partitions("orders", 5)
    until(lambda: consumer.poll(0.1) or consumer.assignment(), lambda found: len(found) == 5)
    assert [each.detail for each in events(orders, "topics_changed")] == ["orders=5"]
    consumer.close()


def test_group_that_does_not_exist(orders: EmbeddedBroker) -> None:
    with pytest.raises(ApiError) as caught:
        past(orders, "nobody")
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("name", "version", "is_told"), [("ottla", 4, True), ("apache-kafka-java", 4, False), ("", 2, False)]
)
def test_only_our_clients_are_told(orders: EmbeddedBroker, name: str, version: int, is_told: bool) -> None:
    connection = RawConnection(orders.bootstrap)
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    told = {each.api_key for each in connection.call(request, version).api_keys}
    assert told == {key for key in SERVED if is_told or key < FIRST_OWN_KEY} - set(TELEMETRY)
    connection.close()
