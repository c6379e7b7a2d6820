"""A broker that is killed and started again: groups, transactions and share groups go on as if nothing had happened."""

import pytest
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Java, Message
from tests.support.clients.members import GroupClient, JavaGroups, Joining, shared_out, until
from tests.support.clients.sharers import ShareClient, polled

PARTITIONS = 2
# Not the classic consumer of Java 4.x: when it can reach no broker it starts over with its bootstrap addresses, forgets
# its topics, takes that for a change of them and joins again, whatever the broker does.
PAIRS = [
    ("java-4.3.1", "consumer"),
    ("java-3.9.2", "range"),
    ("java-3.9.2", "cooperative-sticky"),
    ("confluent-kafka", "range"),
    ("confluent-kafka", "consumer"),
]
EACH_PAIR = pytest.mark.parametrize(
    ("group_client", "protocol"), PAIRS, indirect=["group_client"], ids=[f"{name}-{how}" for name, how in PAIRS]
)


@EACH_PAIR
@pytest.mark.feature("groups: broker killed, no rebalance")
def test_members_go_on(group_client: GroupClient, protocol: str, mortal: Node, java_431: Java, new_name: Names) -> None:
    topic, group = new_name("restart"), new_name("restart")
    java_431.ask("create_topic", mortal.bootstrap, topic=topic, partitions=PARTITIONS)
    members = [group_client.join(mortal.bootstrap, Joining(group, [topic], protocol)) for _ in range(PARTITIONS)]
    until(lambda: shared_out(members, PARTITIONS), lambda: [member.state() for member in members])
    fill(java_431, mortal, topic, "before")
    until(lambda: all(member.state().records for member in members), lambda: [member.state() for member in members])
    for member in members:
        member.commit()
    before = [member.state() for member in members]
    mortal.kill()
    mortal.start()
    fill(java_431, mortal, topic, "after")
    until(
        lambda: all(len(member.state().records) == 2 for member in members),
        lambda: [member.state() for member in members],
    )
    for state, old in zip([member.state() for member in members], before, strict=True):
        assert [each.value for each in state.records] == ["before", "after"]
        assert state.assignment == old.assignment
        assert (state.assigned, state.revoked, state.lost) == (old.assigned, old.revoked, old.lost)
    for member in members:
        member.commit()
    for member in members:
        member.leave()
    committed = {f"{topic}-{partition}": 2 for partition in range(PARTITIONS)}
    assert java_431.ask("committed", mortal.bootstrap, group=group) == committed


@pytest.mark.tool("java 4.3.1")
@pytest.mark.feature("transactions: broker killed while one is open")
def test_open_transactions_are_kept(mortal: Node, java_431: Java, new_name: Names) -> None:
    topic = new_name("restart-txn")
    java_431.ask("create_topic", mortal.bootstrap, topic=topic, partitions=1)
    clients = JavaGroups(java_431._server, java_431.version)
    kept, dropped, forgotten = [clients.transactional(mortal.bootstrap, new_name("restart-id")) for _ in range(3)]
    for producer, value in ((kept, "kept"), (dropped, "dropped"), (forgotten, "forgotten")):
        producer.begin()
        producer.send(topic, 0, [f"{value} before"])
    mortal.kill()
    mortal.start()
    for producer, value in ((kept, "kept"), (dropped, "dropped")):
        producer.send(topic, 0, [f"{value} after"])
    kept.commit()
    dropped.abort()

    def values() -> list[str | None]:
        return [each.value for each in java_431.drain(mortal.bootstrap, topic)]

    # Markers may follow the answer. The rest stands behind the first record of the one that is still open.
    until(lambda: values() == ["kept before"], values)
    forgotten.abort()
    until(lambda: values() == ["kept before", "kept after"], values)
    for producer in (kept, dropped, forgotten):
        producer.close()


@pytest.mark.feature("share groups: broker killed")
@pytest.mark.parametrize("share_client", ["java-4.3.1"], indirect=True)
def test_acknowledgements_are_kept(share_client: ShareClient, mortal: Node, java_431: Java, new_name: Names) -> None:
    """What was accepted never comes again; what was released does, and its deliveries are counted on."""
    topic, group = new_name("restart-share"), new_name("restart-share")
    java_431.ask("create_topic", mortal.bootstrap, topic=topic, partitions=1)
    operations = [["SET", "share.auto.offset.reset", "earliest"]]
    java_431.ask("alter_configs", mortal.bootstrap, type="GROUP", name=group, operations=operations)
    java_431.produce(mortal.bootstrap, topic, 0, [Message(b"%d" % at) for at in range(10)])
    first = share_client.join(mortal.bootstrap, group, topic, explicit=True)
    found = polled(first, 10)
    first.acknowledge(found[::2], "accept")
    first.acknowledge(found[1::2], "release")
    first.commit()
    first.leave()
    mortal.kill()
    mortal.start()
    second = share_client.join(mortal.bootstrap, group, topic, explicit=True)
    again = polled(second, 5)
    assert [int(each.value) for each in again] == [1, 3, 5, 7, 9] and {each.deliveries for each in again} == {2}
    second.acknowledge(again, "accept")
    second.commit()
    second.leave()


def fill(java: Java, node: Node, topic: str, value: str) -> None:
    for partition in range(PARTITIONS):
        java.produce(node.bootstrap, topic, partition, [Message(value.encode())])
