"""Groups change their protocol under real members: classic to consumer and back, one member at a time, with a restart
of the broker in between. Nobody loses its place, no partition has two owners.
"""

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from tests.support.clients.members import Joining, Member, shared_out, until
from tests.support.clients.python_members import ConfluentGroups
from tests.support.processes.brisk import QUICK
from tests.support.processes.kafka import SINGLE_NODE
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S

from ottla.wire.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.groups.list_groups import ListGroupsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest

PARTITIONS = 6
TOPIC = "migrating"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    directory: Path = tmp_path_factory.mktemp("migration")
    node = OttlaNode(directory, properties=SINGLE_NODE | QUICK).start()
    try:
        topic = CreateTopicsRequest.CreatableTopic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=[]
        )
        call(node, CreateTopicsRequest(topics=[topic]), 7)
        yield node
    finally:
        node.stop()


def call(node: OttlaNode, request: object, version: int) -> object:
    connection = RawConnection(node.bootstrap)
    try:
        return connection.call(request, version)  # type: ignore[arg-type]
    finally:
        connection.close()


def kind_of(node: OttlaNode, group: str) -> tuple[str, str]:
    listed = call(node, ListGroupsRequest(states_filter=[], types_filter=[]), 5)
    return next((each.group_type, each.group_state) for each in listed.groups if each.group_id == group)  # type: ignore[attr-defined]


def produce(node: OttlaNode, first: int, count: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap})
    for number in range(first, first + count):
        producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


def stable(*members: Member) -> None:
    until(lambda: shared_out(members, PARTITIONS), lambda: [member.state()._replace(records=[]) for member in members])


def values(*members: Member) -> list[int]:
    return sorted(int(record.value) for member in members for record in member.state().records)


def test_a_group_migrates_there_and_back(node: OttlaNode) -> None:
    clients, group = ConfluentGroups(), "there-and-back"
    classic = Joining(group, [TOPIC], "range")
    consumer = Joining(group, [TOPIC], "consumer")
    old = [clients.join(node.bootstrap, classic) for _ in range(2)]
    stable(*old)
    assert kind_of(node, group) == ("classic", "Stable")
    produce(node, 0, 60)
    until(lambda: len(values(*old)) == 60, lambda: values(*old))
    for member in old:
        member.commit()
    # There: one new member, and the group is a consumer group with two members of the classic kind in it.
    new = [clients.join(node.bootstrap, consumer)]
    stable(*old, *new)
    until(lambda: kind_of(node, group) == ("consumer", "Stable"), lambda: kind_of(node, group))  # told by heartbeats
    # The broker restarts with both kinds of members in the group: they go on as they are.
    held = [member.state().assignment for member in (*old, *new)]
    node.stop()
    node.start()
    until(lambda: kind_of(node, group) == ("consumer", "Stable"), lambda: kind_of(node, group))
    assert [member.state().assignment for member in (*old, *new)] == held
    produce(node, 60, 60)
    until(lambda: len(values(*old, *new)) >= 120, lambda: values(*old, *new))
    # The members of before are replaced.
    for member in old:
        member.commit()
        member.leave()
        new.append(clients.join(node.bootstrap, consumer))
    stable(*new)
    until(lambda: kind_of(node, group) == ("consumer", "Stable"), lambda: kind_of(node, group))  # told by heartbeats
    # And back: the last new one that leaves makes it a classic group again.
    back = [clients.join(node.bootstrap, classic)]
    stable(*new, *back)
    for member in new:
        member.leave()
    stable(*back)
    until(lambda: kind_of(node, group) == ("classic", "Stable"), lambda: kind_of(node, group))
    produce(node, 120, 60)
    until(lambda: set(range(120, 180)) <= set(values(*back)), lambda: values(*back))
    back[0].leave()


def test_members_of_the_new_protocol_survive_a_restart(node: OttlaNode) -> None:
    clients, group = ConfluentGroups(), "restart"
    members = [clients.join(node.bootstrap, Joining(group, [TOPIC], "consumer")) for _ in range(2)]
    stable(*members)
    before = [member.state() for member in members]
    node.kill()
    node.start()
    until(lambda: kind_of(node, group) == ("consumer", "Stable"), lambda: kind_of(node, group))
    after = [member.state() for member in members]
    assert [each.assignment for each in after] == [each.assignment for each in before]
    assert [each.assigned for each in after] == [each.assigned for each in before]  # no rebalance
    for member in members:
        member.leave()


def test_a_pattern_is_matched_by_the_broker(node: OttlaNode) -> None:
    clients, group = ConfluentGroups(), "pattern"
    member = clients.join(node.bootstrap, Joining(group, [], "consumer", pattern="^migr.*g"))
    stable(member)
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    (described,) = call(node, request, 1).groups  # type: ignore[attr-defined]
    assert [each.subscribed_topic_regex for each in described.members] == ["(^migr.*g)"]  # as librdkafka puts it
    member.leave()
