"""Every client's groups: members share the partitions, take over from each other, commit, and go on where they were."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Java, Message
from tests.support.clients.members import GroupClient, Joining, Member, shared_out, until

PARTITIONS = 4
PAIRS = [
    ("java-4.3.1", "range"),
    ("java-4.3.1", "roundrobin"),
    ("java-4.3.1", "cooperative-sticky"),
    ("java-4.3.1", "consumer"),
    ("java-3.9.2", "range"),
    ("java-3.9.2", "cooperative-sticky"),
    ("confluent-kafka", "range"),
    ("confluent-kafka", "cooperative-sticky"),
    ("confluent-kafka", "consumer"),
    ("aiokafka", "range"),
    ("aiokafka", "sticky"),
    ("kafka-python", "range"),
    ("kafka-python", "cooperative-sticky"),
    ("franz-go", "cooperative-sticky"),
    ("franz-go", "consumer"),
    ("kafkajs", "roundrobin"),
]
EACH_PAIR = pytest.mark.parametrize(
    ("group_client", "protocol"), PAIRS, indirect=["group_client"], ids=[f"{name}-{how}" for name, how in PAIRS]
)

Fill = Callable[[str, range], None]


@pytest.fixture(scope="module")
def fill(brisk_node: Node, java_431: Java) -> Fill:
    """fill(topic, numbers): a record "n" for each number, dealt out over the partitions."""

    def produce(topic: str, numbers: range) -> None:
        for partition in range(PARTITIONS):
            own = [Message(str(number).encode()) for number in numbers if number % PARTITIONS == partition]
            java_431.produce(brisk_node.bootstrap, topic, partition, own)

    return produce


def values(members: Sequence[Member]) -> Counter[int]:
    return Counter(int(record.value) for member in members for record in member.state().records)


def received(members: Sequence[Member], numbers: range) -> None:
    until(lambda: set(numbers) <= set(values(members)), lambda: [member.state() for member in members])


def stable(members: Sequence[Member]) -> None:
    until(
        lambda: shared_out(members, PARTITIONS), lambda: [member.state()[:1] + member.state()[2:] for member in members]
    )


@EACH_PAIR
@pytest.mark.feature("groups: join, leave, commit")
def test_members_come_and_go(
    group_client: GroupClient, protocol: str, brisk_node: Node, java_431: Java, new_name: Names, fill: Fill
) -> None:
    bootstrap, topic, group = brisk_node.bootstrap, new_name("grouped"), new_name("group")
    java_431.ask("create_topic", bootstrap, topic=topic, partitions=PARTITIONS)
    how = Joining(group, [topic], protocol)

    # A stable group: every record to one member, once.
    first, second = [group_client.join(bootstrap, how) for _ in range(2)]
    stable([first, second])
    kind = "Consumer" if protocol == "consumer" else "Classic"
    assert java_431.ask("group_type", bootstrap, group=group) == {"type": kind}  # no client fell back to the other
    fill(topic, range(200))
    received([first, second], range(200))
    assert set(values([first, second]).values()) == {1}
    for member in (first, second):
        own = {(record.topic, record.partition) for record in member.state().records}
        assert own == set(member.state().assignment)
        member.commit()
    each = 200 // PARTITIONS
    assert java_431.ask("committed", bootstrap, group=group) == {f"{topic}-{at}": each for at in range(PARTITIONS)}

    # One leaves: the other goes on from what was committed.
    second.leave()
    stable([first])
    fill(topic, range(200, 300))
    received([first], range(200, 300))
    assert all(values([first])[number] == 1 for number in range(200, 300))
    first.commit()
    first.leave()

    # The group is empty; the next member finds the committed offsets.
    fill(topic, range(300, 320))
    third = group_client.join(bootstrap, how)
    received([third], range(300, 320))
    assert set(values([third])) == set(range(300, 320))
    third.leave()
