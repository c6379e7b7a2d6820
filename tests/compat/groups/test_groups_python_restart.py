"""A broker that restarts is not a reason to rebalance: members keep their generation and their partitions."""

import gc
from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Java, Message
from tests.support.clients.members import GroupClient, Joining, Member, shared_out, until
from tests.support.clients.python_members import AioGroups, ConfluentGroups, KafkaPythonGroups
from tests.support.processes.brisk import brisk

PARTITIONS = 4
CLIENTS: dict[str, GroupClient] = {
    "aiokafka": AioGroups(),
    "confluent-kafka": ConfluentGroups(),
    "kafka-python": KafkaPythonGroups(),
}
Groups = dict[str, list[Member]]


@pytest.fixture
def node(against: str, java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One of its own: it is stopped and killed."""
    node = brisk(against, tmp_path_factory.mktemp("restarted"))
    try:
        yield node.start()
    finally:
        node.stop()


def rebalances(groups: Groups) -> dict[str, list[tuple[int, int, int]]]:
    """What each member's listener has heard."""
    return {name: [member.state()[2:5] for member in members] for name, members in groups.items()}


def held(groups: Groups) -> dict[str, list[list[tuple[str, int]]]]:
    return {name: [member.state().assignment for member in members] for name, members in groups.items()}


def everybody_receives(java: Java, bootstrap: str, groups: Groups, topic: str, text: str) -> None:
    """A record for each partition reaches the member that holds it, in each group; and may be committed by it."""
    for partition in range(PARTITIONS):
        java.produce(bootstrap, topic, partition, [Message(f"{text} {partition}".encode())])
    wanted = {f"{text} {partition}" for partition in range(PARTITIONS)}
    for members in groups.values():
        until(
            lambda members=members: wanted <= {each.value for member in members for each in member.state().records},
            lambda members=members: [member.state() for member in members],
        )
        for member in members:
            member.commit()


# kafka-python drops sockets that were refused a connection without closing them.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_members_stay_over_restarts(node: Node, java_431: Java) -> None:
    bootstrap, topic = node.bootstrap, "steady"
    java_431.ask("create_topic", bootstrap, topic=topic, partitions=PARTITIONS)
    groups: Groups = {
        name: [client.join(bootstrap, Joining(f"group of {name}", [topic], "range")) for _ in range(2)]
        for name, client in CLIENTS.items()
    }
    for members in groups.values():
        until(
            lambda members=members: shared_out(members, PARTITIONS),
            lambda members=members: [member.state() for member in members],
        )
    everybody_receives(java_431, bootstrap, groups, topic, "before")
    before, places = rebalances(groups), held(groups)
    node.stop()
    node.start()
    everybody_receives(java_431, bootstrap, groups, topic, "after a stop")
    node.kill()
    node.start()
    everybody_receives(java_431, bootstrap, groups, topic, "after a crash")
    assert held(groups) == places
    assert rebalances(groups) == before
    for members in groups.values():
        for member in members:
            member.leave()
    gc.collect()


@pytest.mark.parametrize("name", CLIENTS)
def test_static_member_comes_back(name: str, brisk_node: Node, java_431: Java, new_name: Names) -> None:
    """It restarts and has its partitions back; the other member does not notice."""
    bootstrap, topic = brisk_node.bootstrap, new_name("static")
    java_431.ask("create_topic", bootstrap, topic=topic, partitions=PARTITIONS)
    how = Joining(new_name("static"), [topic], "range")
    steady, moving = [CLIENTS[name].join(bootstrap, how._replace(instance=instance)) for instance in ("one", "two")]
    until(lambda: shared_out([steady, moving], PARTITIONS), lambda: [steady.state(), moving.state()])
    before, places = steady.state(), moving.state().assignment
    moving.leave()
    again = CLIENTS[name].join(bootstrap, how._replace(instance="two"))
    until(lambda: again.state().assignment == places, again.state)
    everybody_receives(java_431, bootstrap, {name: [steady, again]}, topic, "after")
    assert steady.state()[2:5] == before[2:5]
    again.leave()
    steady.leave()
