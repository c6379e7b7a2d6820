"""Share consumers of every client that has them: acknowledgements, sharing one partition, locks, limits, isolation."""

import time
from collections.abc import Callable, Sequence

import pytest
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Java, Message
from tests.support.clients.members import JavaGroups
from tests.support.clients.sharers import Acquired, LineShares, ShareClient, Sharer, polled
from tests.support.waiting import until

EACH = pytest.mark.parametrize("share_client", ["java-4.3.1", "confluent-kafka", "franz-go"], indirect=True)
RENEWING = pytest.mark.parametrize("share_client", ["java-4.3.1", "franz-go"], indirect=True)  # librdkafka cannot
MakeGroup = Callable[..., str]
Alter = Callable[..., None]


@pytest.fixture(scope="module")
def topic(brisk_node: Node, java_431: Java, new_name: Names) -> Callable[[], str]:
    def make() -> str:
        name = new_name("shared")
        java_431.ask("create_topic", brisk_node.bootstrap, topic=name, partitions=1)
        return name

    return make


@pytest.fixture(scope="module")
def alter(brisk_node: Node, java_431: Java) -> Alter:
    """alter(name, **{"share.…": …}): other settings of a group."""

    def change(name: str, **settings: str) -> None:
        operations = [["SET", key, value] for key, value in settings.items()]
        java_431.ask("alter_configs", brisk_node.bootstrap, type="GROUP", name=name, operations=operations)

    return change


@pytest.fixture(scope="module")
def group(alter: Alter, new_name: Names) -> MakeGroup:
    """group(**{"share.…": …}): a new share group that begins at the earliest record."""

    def make(**settings: str) -> str:
        name = new_name("sharers")
        alter(name, **{"share.auto.offset.reset": "earliest"} | settings)
        return name

    return make


def numbers(records: Sequence[Acquired]) -> list[int]:
    return sorted(int(each.value) for each in records)


def nothing_left(sharer: Sharer) -> bool:
    """Nothing is available to this consumer. What was released or timed out would come with one of these polls."""
    return not sharer.poll(300) and not sharer.poll(300)


@EACH
@pytest.mark.feature("share groups: implicit acknowledgement")
def test_implicit(
    share_client: ShareClient,
    brisk_node: Node,
    java_431: Java,
    topic: Callable[[], str],
    group: MakeGroup,
) -> None:
    """What was polled is accepted with the next poll, or with the commit; nobody gets it again."""
    bootstrap, name, queue = brisk_node.bootstrap, group(), topic()
    java_431.produce(bootstrap, queue, 0, [Message(b"%d" % at) for at in range(100)])
    first = share_client.join(bootstrap, name, queue, explicit=False)
    found = polled(first, 100)
    assert numbers(found) == list(range(100)) and {each.deliveries for each in found} == {1}
    first.poll(100)
    first.commit()
    first.leave()
    java_431.produce(bootstrap, queue, 0, [Message(b"%d" % at) for at in range(100, 110)])
    second = share_client.join(bootstrap, name, queue, explicit=False)
    assert numbers(polled(second, 10)) == list(range(100, 110))
    second.leave()


@EACH
@pytest.mark.feature("share groups: accept, release, reject")
def test_explicit(
    share_client: ShareClient,
    brisk_node: Node,
    java_431: Java,
    topic: Callable[[], str],
    group: MakeGroup,
) -> None:
    bootstrap, name, queue = brisk_node.bootstrap, group(), topic()
    java_431.produce(bootstrap, queue, 0, [Message(b"%d" % at) for at in range(10)])
    sharer = share_client.join(bootstrap, name, queue, explicit=True)
    found = polled(sharer, 10)
    assert numbers(found) == list(range(10))
    for kind, part in (("accept", found[:4]), ("release", found[4:7]), ("reject", found[7:])):
        sharer.acknowledge(part, kind)
    sharer.commit()
    again = polled(sharer, 3)
    assert numbers(again) == [4, 5, 6] and {each.deliveries for each in again} == {2}
    sharer.acknowledge(again, "accept")
    sharer.commit()
    assert nothing_left(sharer)
    sharer.leave()


@EACH
@pytest.mark.feature("share groups: members share a partition")
def test_one_partition_for_two(
    share_client: ShareClient,
    brisk_node: Node,
    java_431: Java,
    topic: Callable[[], str],
    group: MakeGroup,
) -> None:
    bootstrap, name, queue = brisk_node.bootstrap, group(), topic()
    members = [share_client.join(bootstrap, name, queue, explicit=True, limit=10) for _ in range(2)]
    for start in range(0, 120, 10):  # batches of ten, so that a client that takes whole batches finds some too
        java_431.produce(bootstrap, queue, 0, [Message(b"%d" % at) for at in range(start, start + 10)])
    got: list[list[Acquired]] = [[], []]

    def count() -> int:
        for at, member in enumerate(members):
            found = member.poll()
            got[at] += found
            member.acknowledge(found, "accept")
            member.commit()
        return sum(map(len, got))

    until(count, lambda all_of_them: all_of_them >= 120)
    assert numbers([*got[0], *got[1]]) == list(range(120))
    assert got[0] and got[1]
    for member in members:
        member.leave()


@EACH
@pytest.mark.feature("share groups: lock timeout")
def test_what_is_held_too_long_goes_to_another(
    share_client: ShareClient,
    brisk_node: Node,
    java_431: Java,
    topic: Callable[[], str],
    group: MakeGroup,
    alter: Alter,
) -> None:
    bootstrap, queue = brisk_node.bootstrap, topic()
    name = group(**{"share.record.lock.duration.ms": "2000"})
    java_431.produce(bootstrap, queue, 0, [Message(b"%d" % at) for at in range(5)])
    idle = share_client.join(bootstrap, name, queue, explicit=True)
    polled(idle, 5)
    alter(name, **{"share.record.lock.duration.ms": "60000"})  # the next one may take its time
    busy = share_client.join(bootstrap, name, queue, explicit=True)
    found = polled(busy, 5)
    assert numbers(found) == list(range(5)) and {each.deliveries for each in found} == {2}
    busy.acknowledge(found, "accept")
    busy.commit()
    assert nothing_left(busy)
    busy.leave()
    idle.leave()


@RENEWING
@pytest.mark.feature("share groups: renew")
def test_renewed_locks_hold(
    share_client: LineShares,
    brisk_node: Node,
    java_431: Java,
    topic: Callable[[], str],
    group: MakeGroup,
) -> None:
    """Held for longer than the lock's duration without anybody else getting it, then accepted."""
    bootstrap, queue = brisk_node.bootstrap, topic()
    name = group(**{"share.record.lock.duration.ms": "5000"})
    java_431.produce(bootstrap, queue, 0, [Message(b"%d" % at) for at in range(5)])
    holder = share_client.join(bootstrap, name, queue, explicit=True)
    found = polled(holder, 5)
    other = share_client.join(bootstrap, name, queue, explicit=True)
    started = time.monotonic()
    while time.monotonic() < started + 6:
        holder.renew(found)
        assert other.poll(300) == []
    holder.acknowledge(found, "accept")
    holder.commit()
    assert nothing_left(other)
    holder.leave()
    other.leave()


@EACH
@pytest.mark.feature("share groups: delivery limit")
def test_delivery_limit(
    share_client: ShareClient,
    brisk_node: Node,
    java_431: Java,
    topic: Callable[[], str],
    group: MakeGroup,
) -> None:
    bootstrap, queue = brisk_node.bootstrap, topic()
    name = group(**{"share.delivery.count.limit": "2"})
    java_431.produce(bootstrap, queue, 0, [Message(b"%d" % at) for at in range(5)])
    sharer = share_client.join(bootstrap, name, queue, explicit=True)
    for delivery in (1, 2):
        found = polled(sharer, 5)
        assert numbers(found) == list(range(5)) and {each.deliveries for each in found} == {delivery}
        sharer.acknowledge(found, "release")
        sharer.commit()
    assert nothing_left(sharer)
    sharer.leave()


@EACH
@pytest.mark.feature("share groups: small portions of what is delivered often")
def test_what_is_delivered_often_comes_in_portions(
    share_client: ShareClient,
    brisk_node: Node,
    java_431: Java,
    topic: Callable[[], str],
    group: MakeGroup,
) -> None:
    """From half of the delivery limit on; the last time record by record, so that a bad one takes nobody along."""
    bootstrap, queue, name = brisk_node.bootstrap, topic(), group()
    java_431.produce(bootstrap, queue, 0, [Message(b"%d" % at) for at in range(8)])
    sharer = share_client.join(bootstrap, name, queue, explicit=True)
    for delivery, size in enumerate((8, 8, 8, 4, 1), 1):
        found = polled(sharer, 1)
        assert numbers(found) == list(range(size)) and {each.deliveries for each in found} == {delivery}
        sharer.acknowledge(found, "release")
        sharer.commit()
    for expected in ([1], [2], [3], [4, 5, 6, 7]):
        found = polled(sharer, 1)
        assert numbers(found) == expected
        sharer.acknowledge(found, "accept")
        sharer.commit()
    assert nothing_left(sharer)
    sharer.leave()


@EACH
@pytest.mark.feature("share groups: committed records only")
def test_isolation(
    share_client: ShareClient,
    brisk_node: Node,
    java_431: Java,
    topic: Callable[[], str],
    group: MakeGroup,
    new_name: Names,
) -> None:
    bootstrap, queue = brisk_node.bootstrap, topic()
    name = group(**{"share.isolation.level": "read_committed"})
    producer = JavaGroups(java_431._server, java_431.version).transactional(bootstrap, new_name("share-id"))
    for at, end in enumerate((producer.abort, producer.commit)):
        producer.begin()
        producer.send(queue, 0, [str(10 * at + each) for each in range(10)])
        end()
    producer.close()
    sharer = share_client.join(bootstrap, name, queue, explicit=False)
    assert numbers(polled(sharer, 10)) == list(range(10, 20))
    sharer.leave()
