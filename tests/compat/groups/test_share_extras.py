"""Key order, pauses, dead letters and delayed delivery, seen by stock share consumers that know nothing of them."""

import time
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from tests.compat.conftest import Names
from tests.server.share_talk import configure
from tests.server.talk import create
from tests.support.clients.assigned import Confluent, Message
from tests.support.clients.sharers import Acquired, ShareClient, Sharer, polled
from tests.support.processes.brisk import QUICK
from tests.support.processes.kafka import SINGLE_NODE
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S, until

EACH = pytest.mark.parametrize("share_client", ["java-4.3.1", "confluent-kafka"], indirect=True)
KEYS = (b"red", b"green", b"blue")
Make = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    node = OttlaNode(tmp_path_factory.mktemp("extras"), properties=SINGLE_NODE | QUICK)
    try:
        yield node.start()
    finally:
        node.stop()


@pytest.fixture
def make(node: OttlaNode, new_name: Names) -> Make:
    """A topic and a group with these settings (underscores for dots) that begins at its first record."""

    def made(**settings: object) -> tuple[str, str]:
        topic, group = new_name("extra"), new_name("extras")
        with RawConnection(node.bootstrap) as connection:
            create(connection, topic)
            configure(connection, group, share_auto_offset_reset="earliest", **settings)
        return topic, group

    return made


def put(node: OttlaNode, topic: str, *messages: Message) -> None:
    Confluent().produce(node.bootstrap, topic, 0, messages)


def dead_letters(node: OttlaNode, topic: str) -> list[confluent_kafka.Message]:
    """All that is there, by a consumer that has no group."""
    settings = {"bootstrap.servers": node.bootstrap, "group.id": "unused", "enable.partition.eof": True}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
        found.append(message)
    consumer.close()
    return found


def accept(sharer: Sharer, records: list[Acquired]) -> None:
    sharer.acknowledge(records, "accept")
    sharer.commit()


@EACH
@pytest.mark.feature("share groups: key order")
def test_no_two_records_of_a_key_are_out(share_client: ShareClient, node: OttlaNode, make: Make) -> None:
    topic, group = make(ottla_share_key_ordered="true")
    put(node, topic, *[Message(b"%d" % at, KEYS[at % 3]) for at in range(15)])
    members = [share_client.join(node.bootstrap, group, topic, explicit=True) for _ in range(2)]
    done: list[int] = []
    deadline = time.monotonic() + WAIT_S
    while len(done) < 15:
        assert time.monotonic() < deadline, done
        hands = [member.poll(200) for member in members]
        out = [int(each.value) for hand in hands for each in hand]
        assert len({number % 3 for number in out}) == len(out), f"two of one key are out: {out}"
        for member, hand in zip(members, hands, strict=True):
            if hand:
                accept(member, hand)
        done += out
    for key in range(3):
        assert [number for number in done if number % 3 == key] == list(range(key, 15, 3))
    for member in members:
        member.leave()


@EACH
@pytest.mark.feature("share groups: retry with backoff")
def test_a_released_record_pauses(share_client: ShareClient, node: OttlaNode, make: Make) -> None:
    """With a long pause others come meanwhile; after a short one it comes again."""
    for pause_ms, expected in ((3_600_000, ("next", 1)), (100, ("flaky", 2))):
        topic, group = make(ottla_share_retry_backoff_ms=pause_ms, ottla_share_retry_backoff_max_ms=pause_ms)
        put(node, topic, Message(b"flaky"), Message(b"fine"))
        sharer = share_client.join(node.bootstrap, group, topic, explicit=True)
        flaky, fine = polled(sharer, 2)
        sharer.acknowledge([flaky], "release")
        accept(sharer, [fine])
        if expected[0] == "next":
            put(node, topic, Message(b"next"))
        (then,) = polled(sharer, 1)
        assert (then.value, then.deliveries) == expected
        accept(sharer, [then])
        sharer.leave()


@EACH
@pytest.mark.feature("share groups: dead-letter topic")
def test_dead_letters(share_client: ShareClient, node: OttlaNode, make: Make, new_name: Names) -> None:
    graves = new_name("graves")
    topic, group = make(ottla_share_dlq_topic=graves, share_delivery_count_limit=2)
    put(node, topic, Message(b"bad", b"k", (("trace", b"7"),)), Message(b"tiresome"))
    sharer = share_client.join(node.bootstrap, group, topic, explicit=True)
    bad, tiresome = polled(sharer, 2)
    sharer.acknowledge([bad], "reject")
    sharer.acknowledge([tiresome], "release")
    sharer.commit()
    (again,) = polled(sharer, 1)
    sharer.acknowledge([again], "release")
    sharer.commit()
    first, second = dead_letters(node, graves)
    told = dict(first.headers())
    assert (first.key(), first.value(), told["trace"]) == (b"k", b"bad", b"7")
    assert (told["ottla.dlq.topic"], told["ottla.dlq.offset"]) == (topic.encode(), b"0")
    assert (told["ottla.dlq.group"], told["ottla.dlq.reason"]) == (group.encode(), b"rejected")
    assert (second.value(), dict(second.headers())["ottla.dlq.reason"]) == (b"tiresome", b"delivery-limit")
    sharer.leave()


@EACH
@pytest.mark.feature("share groups: delayed delivery")
def test_delayed_delivery(share_client: ShareClient, node: OttlaNode, make: Make) -> None:
    topic, group = make(ottla_share_delayed_delivery_enable="true")
    sharer = share_client.join(node.bootstrap, group, topic, explicit=True)
    sharer.poll(100)
    now_ms = int(time.time() * 1000)
    put(
        node,
        topic,
        Message(b"too late for this test", None, (("ottla.deliver-at", b"%d" % (now_ms + 3_600_000)),)),
        Message(b"at its time", None, (("ottla.deliver-at", b"%d" % (now_ms + 1_000)),)),
        Message(b"after a while", None, (("ottla.delay-ms", b"1000"),)),
        Message(b"now"),
    )
    came_ms: dict[str, float] = {}

    def come() -> dict[str, float]:
        records = sharer.poll(100)
        came_ms.update({record.value: time.time() * 1000 for record in records})
        if records:
            accept(sharer, records)
        return came_ms

    until(come, lambda found: len(found) >= 3)
    assert sorted(came_ms) == ["after a while", "at its time", "now"]
    assert min(came_ms["at its time"], came_ms["after a while"]) >= now_ms + 1_000
    sharer.leave()


@pytest.mark.parametrize("share_client", ["java-4.3.1"], indirect=True)
@pytest.mark.feature("share groups: survive kill -9 of the broker")
def test_a_broker_that_is_killed_loses_nothing(
    share_client: ShareClient, node: OttlaNode, make: Make, new_name: Names
) -> None:
    """The consumer stays and goes on by itself; what was accepted before does not come again, all else does."""
    graves = new_name("graves")
    topic, group = make(ottla_share_dlq_topic=graves, ottla_share_key_ordered="true")
    put(node, topic, *[Message(b"%d" % at, b"%d" % at) for at in range(40)])
    sharer = share_client.join(node.bootstrap, group, topic, explicit=True, limit=10)
    before = polled(sharer, 10)
    sharer.acknowledge(before[:2], "reject")
    accept(sharer, before[2:])
    held = polled(sharer, 10)
    node.kill()
    node.start()
    with pytest.raises(AssertionError, match="Exception"):  # what was held when it died is not held any more
        accept(sharer, held)
    after: list[Acquired] = []
    deadline = time.monotonic() + WAIT_S
    while len({each.offset for each in after}) < 30:
        assert time.monotonic() < deadline, sorted(each.offset for each in after)
        found = sharer.poll()
        after += found
        if found:
            accept(sharer, found)
    assert sorted(each.offset for each in after) == list(range(10, 40))
    assert [letter.value() for letter in dead_letters(node, graves)] == [b"0", b"1"]
    sharer.leave()
