"""What only some Java members do: static ones, patterns, both protocols in one group, more members than partitions."""

from collections.abc import Callable

import pytest
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Java, Message
from tests.support.clients.members import JavaGroups, Joining, Member, shared_out, until

PARTITIONS = 4
MakeTopic = Callable[[str], str]


@pytest.fixture(scope="module")
def topics(brisk_node: Node, java_431: Java, new_name: Names) -> MakeTopic:
    def make(prefix: str) -> str:
        name = new_name(prefix)
        java_431.ask("create_topic", brisk_node.bootstrap, topic=name, partitions=PARTITIONS)
        return name

    return make


@pytest.fixture(scope="module")
def members(brisk_node: Node, java_431: Java) -> JavaGroups:
    return JavaGroups(java_431._server, java_431.version)


def stable(*members: Member, partitions: int = PARTITIONS) -> None:
    seen = [member.state for member in members]
    until(lambda: shared_out(members, partitions), lambda: [state()._replace(records=[]) for state in seen])


def until_received(member: Member, *wanted: str) -> None:
    until(lambda: set(wanted) <= {each.value for each in member.state().records}, member.state)


@pytest.mark.tool("java 4.3.1")
@pytest.mark.feature("groups: static members")
@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "consumer"])
def test_static_member_comes_back(
    protocol: str, brisk_node: Node, java_431: Java, members: JavaGroups, topics: MakeTopic, new_name: Names
) -> None:
    bootstrap, topic = brisk_node.bootstrap, topics("static")
    how = Joining(new_name("static"), [topic], protocol)
    steady = members.join(bootstrap, how._replace(instance="steady"))
    moving = members.join(bootstrap, how._replace(instance="moving"))
    stable(steady, moving)
    before, held = steady.state(), moving.state().assignment
    moving.leave()
    java_431.produce(bootstrap, topic, held[0][1], [Message(b"while it was away")])
    moving = members.join(bootstrap, how._replace(instance="moving"))
    until_received(moving, "while it was away")
    assert moving.state().assignment == held
    after = steady.state()
    assert (after.assigned, after.revoked, after.lost) == (before.assigned, before.revoked, before.lost)
    moving.leave()
    steady.leave()


@pytest.mark.tool("java 4.3.1")
@pytest.mark.feature("groups: static members")
@pytest.mark.parametrize("protocol", ["range", "consumer"])
def test_twins_are_fenced(
    protocol: str, brisk_node: Node, members: JavaGroups, topics: MakeTopic, new_name: Names
) -> None:
    """In the classic protocol the newer twin wins, in the newer protocol the older one."""
    how = Joining(new_name("twins"), [topics("twins")], protocol, instance="twin")
    older = members.join(brisk_node.bootstrap, how)
    stable(older)
    newer = members.join(brisk_node.bootstrap, how)
    loser, winner = (older, newer) if protocol == "range" else (newer, older)
    error = "FencedInstanceIdException" if protocol == "range" else "UnreleasedInstanceIdException"
    until(lambda: loser.state().failed == error, loser.state)
    stable(winner)
    loser.leave()
    winner.leave()


@pytest.mark.tool("java 4.3.1")
@pytest.mark.feature("groups: subscription by pattern")
@pytest.mark.parametrize(("protocol", "prefix"), [("range", ""), ("consumer", ""), ("consumer", "re2:")])
def test_pattern(
    protocol: str,
    prefix: str,
    brisk_node: Node,
    java_431: Java,
    members: JavaGroups,
    topics: MakeTopic,
    new_name: Names,
) -> None:
    """Matched by the client, or (re2:) by the broker."""
    base = new_name("pattern")
    wanted = [topics(f"{base}-yes-{at}") for at in range(2)]
    other = topics(f"{base}-no")
    for at, topic in enumerate([*wanted, other]):
        java_431.produce(brisk_node.bootstrap, topic, 0, [Message(b"%d" % at)])
    how = Joining(new_name("pattern"), [], protocol, pattern=f"{prefix}{base}-yes-.*")
    member = members.join(brisk_node.bootstrap, how)
    stable(member, partitions=2 * PARTITIONS)
    until_received(member, "0", "1")
    assert {topic for topic, _ in member.state().assignment} == set(wanted)
    member.leave()


@pytest.mark.tool("java 4.3.1")
@pytest.mark.feature("groups: from one protocol to the other")
def test_both_protocols_in_one_group(
    brisk_node: Node, java_431: Java, members: JavaGroups, topics: MakeTopic, new_name: Names
) -> None:
    """A classic member, then one of the newer protocol beside it, then only that; and back again."""
    topic, group = topics("both"), new_name("both")
    classic = members.join(brisk_node.bootstrap, Joining(group, [topic], "range"))
    stable(classic)
    newer = members.join(brisk_node.bootstrap, Joining(group, [topic], "consumer"))
    stable(classic, newer)
    partition = newer.state().assignment[0][1]
    java_431.produce(brisk_node.bootstrap, topic, partition, [Message(b"to the newer one")])
    until_received(newer, "to the newer one")
    newer.commit()
    classic.leave()
    stable(newer)
    back = members.join(brisk_node.bootstrap, Joining(group, [topic], "range"))
    stable(newer, back)
    newer.leave()
    stable(back)
    java_431.produce(brisk_node.bootstrap, topic, partition, [Message(b"later")])
    until_received(back, "later")
    assert [each.value for each in back.state().records] == ["later"]  # it goes on after the commit
    back.leave()


@pytest.mark.tool("java 4.3.1")
@pytest.mark.feature("groups: more members than partitions")
@pytest.mark.parametrize("protocol", ["cooperative-sticky", "consumer"])
def test_more_members_than_partitions(
    protocol: str, brisk_node: Node, java_431: Java, members: JavaGroups, topics: MakeTopic, new_name: Names
) -> None:
    """Nothing is lost while members come and go; whoever is idle takes over."""
    topic = topics("many")
    how = Joining(new_name("many"), [topic], protocol)
    joined = [members.join(brisk_node.bootstrap, how) for _ in range(PARTITIONS + 2)]
    stable(*joined)
    for partition in range(PARTITIONS):
        sent = [Message(b"%d" % (partition * 50 + at)) for at in range(50)]
        java_431.produce(brisk_node.bootstrap, topic, partition, sent)
    for member in joined[:3]:
        member.leave()
    stable(*joined[3:])
    wanted = {str(at) for at in range(50 * PARTITIONS)}
    until(
        lambda: {each.value for member in joined[3:] for each in member.state().records} >= wanted,
        lambda: [len(member.state().records) for member in joined[3:]],
    )
    for member in joined[3:]:
        member.leave()
