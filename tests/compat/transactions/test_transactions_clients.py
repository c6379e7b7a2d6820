"""Every client's transactions: readers of committed records see all or nothing; fencing; offsets in a transaction."""

import pytest
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Java, Message
from tests.support.clients.members import GroupClient, Joining

CLIENTS = ("java-4.3.1", "java-3.9.2", "confluent-kafka", "aiokafka", "kafka-python", "franz-go", "kafkajs")
EACH = pytest.mark.parametrize("group_client", CLIENTS, indirect=True)
COPIER = {"confluent-kafka": "range", "aiokafka": "range", "kafka-python": "range", "kafkajs": "roundrobin"}


def values(java: Java, bootstrap: str, topic: str, isolation: str = "read_committed") -> list[str | None]:
    return [each.value for each in java.drain(bootstrap, topic, isolation)]


@EACH
@pytest.mark.feature("transactions: commit, abort")
def test_all_or_nothing(group_client: GroupClient, brisk_node: Node, java_431: Java, new_name: Names) -> None:
    bootstrap, topics = brisk_node.bootstrap, [new_name("txn"), new_name("txn")]
    for topic in topics:
        java_431.ask("create_topic", bootstrap, topic=topic, partitions=1)
    producer = group_client.transactional(bootstrap, new_name("id"))
    for word in ("kept", "dropped", "kept too", "dropped too"):
        producer.begin()
        for topic in topics:
            producer.send(topic, 0, [f"{word} {at}" for at in range(5)])
        if word.startswith("kept"):
            producer.commit()
        else:
            producer.abort()
    producer.begin()
    producer.send(topics[0], 0, ["undecided"])
    kept = [f"{word} {at}" for word in ("kept", "kept too") for at in range(5)]
    for topic in topics:
        assert values(java_431, bootstrap, topic) == kept
    assert "undecided" in values(java_431, bootstrap, topics[0], "read_uncommitted")
    producer.commit()
    producer.close()
    assert values(java_431, bootstrap, topics[0]) == [*kept, "undecided"]
    assert len(values(java_431, bootstrap, topics[0], "read_uncommitted")) == 21


@EACH
@pytest.mark.feature("transactions: fencing")
def test_a_twin_is_fenced(group_client: GroupClient, brisk_node: Node, java_431: Java, new_name: Names) -> None:
    bootstrap, topic, identity = brisk_node.bootstrap, new_name("fenced"), new_name("id")
    java_431.ask("create_topic", bootstrap, topic=topic, partitions=1)
    old = group_client.transactional(bootstrap, identity)
    old.begin()
    old.send(topic, 0, ["from the old one"])
    new = group_client.transactional(bootstrap, identity)
    new.begin()
    new.send(topic, 0, ["from the new one"])
    with pytest.raises(group_client.fenced):
        old.commit()
    new.commit()
    new.close()
    old.close()
    assert values(java_431, bootstrap, topic) == ["from the new one"]


@EACH
@pytest.mark.feature("transactions: consume, transform, produce")
def test_copy(group_client: GroupClient, brisk_node: Node, java_431: Java, new_name: Names) -> None:
    """Two copiers of one group, one after the other: the second goes on where the first one's transactions ended."""
    bootstrap, source, target, group = brisk_node.bootstrap, new_name("source"), new_name("target"), new_name("copiers")
    for topic, partitions in ((source, 2), (target, 1)):
        java_431.ask("create_topic", bootstrap, topic=topic, partitions=partitions)
    how = Joining(group, [source], COPIER.get(group_client.name, "cooperative-sticky"))
    for turn in range(2):
        numbers = range(100 * turn, 100 * turn + 100)
        for partition in range(2):
            own = [Message(str(number).encode()) for number in numbers if number % 2 == partition]
            java_431.produce(bootstrap, source, partition, own)
        group_client.copy(bootstrap, how, target, new_name("copier"), 100)
        copies = values(java_431, bootstrap, target)
        assert sorted(map(str, copies)) == sorted(f"copy of {number}" for number in range(numbers.stop))
    assert java_431.ask("committed", bootstrap, group=group) == {f"{source}-{at}": 100 for at in range(2)}
