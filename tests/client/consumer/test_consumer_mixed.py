"""Groups of our consumer together with others': they understand each other, whoever leads.

Sticky assignors are told what a member had before; a member that was misunderstood would lose more than it must.
"""

import asyncio
from collections.abc import Callable

import pytest
from tests.client.consuming import LIVELY, Reader, fill, options_of, partitions_of, run, topic_with, until
from tests.support.clients import members
from tests.support.clients.members import GroupClient, JavaGroups, Joining
from tests.support.clients.python_members import AioGroups, ConfluentGroups, KafkaPythonGroups

from ottla import Cluster, TopicPartition

PAIRS = [
    ("java", "range"),
    ("java", "roundrobin"),
    ("java", "sticky"),
    ("java", "cooperative-sticky"),
    ("java", "consumer"),
    ("confluent-kafka", "range"),
    ("confluent-kafka", "cooperative-sticky"),
    ("aiokafka", "sticky"),
    ("kafka-python", "cooperative-sticky"),
]
# Other clients' groups on Ottla have tests of their own; that both understand Java there as well is shown here.
PLACES = [
    (broker, client, protocol)
    for broker in ("kafka", "ottla")
    for client, protocol in PAIRS
    if broker == "kafka" or client == "java"
]
INCREMENTAL = ("cooperative-sticky", "consumer")


@pytest.fixture
def other(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> GroupClient:
    monkeypatch.setitem(members.ASSIGNORS, "sticky", "org.apache.kafka.clients.consumer.StickyAssignor")
    makers: dict[str, Callable[[], GroupClient]] = {
        "java": lambda: JavaGroups(request.getfixturevalue("java_clients_431"), "4.3.1"),
        "confluent-kafka": ConfluentGroups,
        "aiokafka": AioGroups,
        "kafka-python": KafkaPythonGroups,
    }
    return makers[request.param]()


@pytest.fixture
def bootstrap(request: pytest.FixtureRequest) -> str:
    if request.param == "kafka":
        return str(request.getfixturevalue("lively_kafka_bootstrap"))
    return str(request.getfixturevalue("ottla_broker_factory")(**LIVELY).bootstrap)


@pytest.mark.compat
@pytest.mark.parametrize("we_lead", [True, False], ids=["we lead", "they lead"])
@pytest.mark.parametrize(("bootstrap", "other", "protocol"), PLACES, indirect=["bootstrap", "other"])
def test_a_mixed_group(bootstrap: str, other: GroupClient, protocol: str, we_lead: bool) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 4, 10)
        options = options_of(protocol, topic)
        joining = Joining(topic, [topic], protocol)
        async with Reader(bootstrap, options) as ours:
            if we_lead:
                ours.start([topic])
                await until(lambda: len(ours.consumer.assignment) == 4 and len(ours.records) == 40)
                theirs = await asyncio.to_thread(other.join, bootstrap, joining)
            else:
                theirs = await asyncio.to_thread(other.join, bootstrap, joining)
                await until(lambda: len(theirs.state().assignment) == 4)
                ours.start([topic])

            def held() -> list[TopicPartition]:
                mine, other_ones = (
                    ours.consumer.assignment,
                    [TopicPartition(*each) for each in theirs.state().assignment],
                )
                return mine + other_ones if len(mine) == len(other_ones) == 2 else []

            try:
                found = await until(held, lambda: (ours.events, theirs.state()))
                assert sorted(found) == partitions_of(topic, 4)
                mine = ours.consumer.assignment
                if we_lead and protocol in INCREMENTAL:
                    assert [len(each) for kind, each in ours.events if kind == "revoked"] == [2]
                await fill(cluster, topic, 4, range(10, 20))
                wanted = [(each.partition, offset) for each in mine for offset in range(10, 20)]
                await until(lambda: set(wanted) <= set(ours.places()))
            finally:
                await asyncio.to_thread(theirs.leave)
            await until(lambda: len(ours.consumer.assignment) == 4)
            if protocol in INCREMENTAL:
                assert set(mine) <= set(ours.held)
                assert not [each for kind, each in ours.events if kind == "lost"]

    run(bootstrap, test)
