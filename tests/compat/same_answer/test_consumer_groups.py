"""Consumer groups (KIP-848): the same answers as a real Kafka, to members who behave and to those who do not."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.compat.conftest import Names
from tests.support.requests.beats import Flock, KnownTopics
from tests.support.requests.same import Both, Plain, Side

from ottla.groups.modern.metadata import metadata_hash
from ottla.groups.view import GroupTopic
from ottla.wire.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.groups.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest

EVERY_VERSION = pytest.mark.parametrize("version", [0, 1])
Owned = ConsumerGroupHeartbeatRequest.TopicPartitions


@EVERY_VERSION
def test_members_come_and_go(both: Both, new_name: Names, version: int) -> None:
    group, topic = new_name("come-and-go"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 4)
        flock = Flock(side, group)
        anna, bert = flock.bird("anna", [topic]), flock.bird("bert", [topic])
        yield flock.described(version)
        yield anna.join(version)
        yield flock.described(version)
        yield anna.beat(version)
        yield anna.confirm(version)
        yield bert.join(version)
        yield flock.described(version)
        yield bert.beat(version)  # all is still with anna
        yield anna.beat(version)  # she is told to give some back
        yield flock.described(version)
        yield anna.beat(version)  # and has not yet
        yield bert.beat(version)
        yield anna.confirm(version)  # now she has
        yield flock.described(version)
        yield bert.beat(version)
        yield bert.confirm(version)
        yield flock.described(version)
        yield anna.leave()
        yield flock.described(version)
        yield anna.beat(version)
        yield bert.beat(version)
        yield bert.confirm(version)
        yield flock.described(version)
        yield bert.leave()
        yield flock.described(version)
        yield bert.leave()
        yield flock.journal()

    *_, journal = both.same(script)
    assert len(journal) > 20


BAD: dict[str, dict[str, Any]] = {
    "no group id": {"group_id": ""},
    "blank group id": {"group_id": "  "},
    "no member id": {"member_id": ""},
    "no member id, staying": {"member_id": "", "member_epoch": 1},
    "no member id, leaving": {"member_id": "", "member_epoch": -1},
    "empty instance id": {"instance_id": ""},
    "empty rack": {"rack_id": ""},
    "no timeout": {"rebalance_timeout_ms": -1},
    "absurd timeout": {"rebalance_timeout_ms": -7},
    "no time at all": {"rebalance_timeout_ms": 0},
    "owned not told": {"topic_partitions": None},
    "owns something": {"topic_partitions": [Owned(topic_id=bytes(range(16)), partitions=[0])]},
    "no subscription": {"subscribed_topic_names": None},
    "empty subscription": {"subscribed_topic_names": []},
    "topics that cannot be": {"subscribed_topic_names": ["", "a/b", "x" * 300]},
    "unknown assignor": {"server_assignor": "sticky"},
    "empty assignor": {"server_assignor": ""},
    "range": {"server_assignor": "range"},
    "static leave without instance": {"member_epoch": -2},
    "epoch -3": {"member_epoch": -3},
    "huge epoch": {"member_epoch": 2**31 - 1},
    "leaves a group that is not there": {"member_epoch": -1},
    "stays in a group that is not there": {"member_epoch": 3},
}


@EVERY_VERSION
def test_bad_heartbeats(both: Both, new_name: Names, version: int) -> None:
    """To groups that are not there, and to one with a member."""
    group, topic = new_name("bad"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        flock = Flock(side, group)
        yield flock.bird("anna", [topic]).join(version)
        for number, (what, said) in enumerate(BAD.items()):
            bert = flock.bird("bert", [topic])
            for group_id in (f"{group}-{number}", group):
                answer = bert.join(version, **{"group_id": group_id, **said})
                if what == "no member id" and version == 0:
                    answer["member_id"] = len(answer["member_id"])  # the coordinator chose it
                yield what, answer
                bert.leave(group_id=group_id)

    both.same(script)


def test_epochs_that_are_wrong(both: Both, new_name: Names) -> None:
    group, topic = new_name("epochs"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        topic_id = side.create(topic, 4)
        flock = Flock(side, group)
        anna, bert = flock.bird("anna", [topic]), flock.bird("bert", [topic])
        yield anna.join()
        yield bert.join()
        yield anna.beat()
        yield anna.beat(member_epoch=anna.epoch + 1)
        yield anna.confirm()
        yield anna.beat(member_epoch=anna.epoch - 1)
        # The answer was lost: who comes with the epoch before and owns no more than it may is let on.
        yield anna.beat(member_epoch=anna.epoch - 1, topic_partitions=[Owned(topic_id=topic_id, partitions=[0])])
        yield anna.beat(member_epoch=1, topic_partitions=[Owned(topic_id=topic_id, partitions=[3])])
        yield anna.beat(member_epoch=1, topic_partitions=[])
        yield bert.beat(member_id="nobody")
        yield anna.join()  # anew, as if it had forgotten everything
        yield anna.beat(member_epoch=0)
        yield flock.described()

    both.same(script)


def test_full_requests_are_answered_in_full(both: Both, new_name: Names) -> None:
    group, topic, other = new_name("full"), new_name("topic"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        side.create(other, 2)
        flock = Flock(side, group)
        anna = flock.bird("anna", [topic])
        yield anna.join()
        everything = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [topic]}
        yield anna.beat(**everything)
        yield anna.confirm(**everything)
        yield anna.confirm(rebalance_timeout_ms=50_000)
        yield anna.confirm(subscribed_topic_names=[topic, other])
        yield anna.beat(subscribed_topic_names=[other])  # what it no longer reads is taken away at once
        yield flock.described()
        yield anna.confirm()
        yield flock.described()
        yield anna.beat(subscribed_topic_names=[])
        yield anna.confirm()
        yield anna.beat(rack_id="r1")
        yield anna.beat(server_assignor="range", subscribed_topic_names=[topic])
        yield flock.described()
        yield flock.journal()

    both.same(script)


def test_static_members(both: Both, new_name: Names) -> None:
    group, topic = new_name("static"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        flock = Flock(side, group)
        anna = flock.bird("anna", [topic], instance_id="a")
        yield anna.join()
        yield flock.bird("twin", [topic], instance_id="a").join()
        yield anna.beat(member_id="twin")
        yield anna.beat(instance_id="b")
        yield anna.beat(instance_id=None)
        yield flock.bird("twin", instance_id="a").leave(-1)
        yield flock.bird("twin", instance_id="nobody").leave(-2)
        yield anna.leave(-2)
        yield flock.described()
        yield anna.beat(member_epoch=1)
        again = flock.bird("anna-2", [topic], instance_id="a")
        yield again.join()
        yield anna.beat(member_epoch=1)
        yield flock.described()
        yield again.leave(-2)
        yield flock.bird("anna-3", [], instance_id="a").join()  # with another subscription
        yield flock.described()
        yield flock.bird("anna-3", instance_id="a").leave(-1)
        yield flock.described()
        yield flock.journal()

    both.same(script)


def test_topics_change(both: Both, new_name: Names) -> None:
    group, topic, later = new_name("topics"), new_name("topic"), new_name("later")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        flock = Flock(side, group)
        anna = flock.bird("anna", [topic, later])
        yield anna.join()
        yield anna.confirm()
        side.create(later, 2)
        side.settle()
        yield anna.beat()
        yield anna.confirm()
        yield flock.described()
        flock.bird("bert", [topic]).join()
        yield flock.described()

    both.same(script)


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_assignors(both: Both, new_name: Names, assignor: str) -> None:
    """Numbers that come out even: who gets one more of an odd number depends on hashes."""
    group, topics = new_name("assignors"), [new_name("topic") for _ in range(3)]

    def script(side: Side) -> Iterator[Plain]:
        for topic, partitions in zip(topics, (6, 2, 4), strict=True):
            side.create(topic, partitions)
        flock = Flock(side, group)
        birds = [flock.bird(name, topics, server_assignor=assignor) for name in ("a", "b", "c")]
        if assignor == "uniform":
            birds[0].join()
            birds[1].join()
            for _ in range(3):
                for bird in birds[:2]:
                    bird.confirm()
            described = flock.described()
            yield [_sizes(member) for member in described["groups"][0]["members"]]
        else:
            for bird in birds:
                bird.join()
            for _ in range(3):
                for bird in birds:
                    bird.confirm()
            yield flock.described()

    both.same(script)


def _sizes(member: Plain) -> dict[str, int]:
    return {
        kind: sum(len(topic["partitions"]) for topic in member[kind]["topic_partitions"])
        for kind in ("assignment", "target_assignment")
    }


REGEXES = (
    r"a(b", r"a)b", r"[a", r"*a", r"a**", r"a{2}{3}", r"(?=a)", r"(?<!a)b", r"\1", r"(a)\1", r"a\Z", "a\\", r"\pZork",
    r"[b-a]", r"[[:zork:]]", r"a{1001}", r"(a{100}){100}", r"(?P<n>a)(?P<n>b)", r"(?P<n", r"(?z)a", r"a++", r"x{2,1}",
    r"\8", r"\x{110000}", r"[a-\d]", r"(?i", r"+", r"|*", r"(*)", r"^*", r"\C", r"\xz", r"(?<n>a)", r"a{,2}", r"\Qa",
    "", "(|a)*", r"\p{Greek}", r"[\pN.]+",
)  # fmt: skip


def test_regular_expressions_that_are_none(both: Both, new_name: Names) -> None:
    """The same ones are refused, for the same reasons."""
    group = new_name("regexes")

    def script(side: Side) -> Iterator[Plain]:
        flock = Flock(side, group)
        for number, regex in enumerate(REGEXES):
            bird = flock.bird(f"bird-{number}", None, subscribed_topic_regex=regex)
            answer = bird.join()
            yield regex, answer["error_code"], answer["error_message"]
            if answer["error_code"] == 0:
                bird.leave()

    both.same(script)


def test_describe(both: Both, new_name: Names) -> None:
    nobody = new_name("nobody")

    def script(side: Side) -> Iterator[Plain]:
        Flock(side, nobody)
        for version in (0, 1):
            for ids in ([], [nobody], ["", nobody, nobody]):
                for operations in (False, True):
                    request = ConsumerGroupDescribeRequest(group_ids=ids, include_authorized_operations=operations)
                    yield side.call(request, version)

    both.same(script)


def test_the_order_of_members(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 3)
        flock = Flock(side, group)
        for number in range(7):
            flock.bird(f"member-{number}", [topic]).join()
        yield [member["member_id"] for member in flock.described()["groups"][0]["members"]]

    both.same(script)


def test_the_hash_of_the_topics(both: Both, new_name: Names) -> None:
    """A coordinator that takes over the other's records finds that nothing changed."""
    group, topics = new_name("hash"), [new_name("topic"), new_name("longer-name-of-a-topic")]

    def script(side: Side) -> Iterator[Plain]:
        infos = {
            name: GroupTopic(name, side.create(name, partitions), partitions)
            for name, partitions in zip(topics, (1, 70), strict=True)
        }
        flock = Flock(side, group)
        bird = flock.bird("anna", topics[:1])
        bird.join()
        bird.beat(subscribed_topic_names=topics)
        written = [each["metadata_hash"] for each in flock.values("ConsumerGroupMetadataKey")]
        known = KnownTopics(infos)
        yield written == [metadata_hash(topics[:1], known), metadata_hash(topics, known)]

    assert both.same(script) == [True]


def test_regular_expressions(both: Both, new_name: Names) -> None:
    group, topic = new_name("regex"), new_name("regexed")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        flock = Flock(side, group)
        regex = topic[:-2] + "(x|.)+"
        anna = flock.bird("anna", None, subscribed_topic_regex=regex)
        yield anna.join()
        flock.wait_for_epoch(2)
        yield anna.confirm()
        yield flock.described()
        bert = flock.bird("bert", [], subscribed_topic_regex=regex)
        yield bert.join()  # what it means is known already
        yield anna.beat()
        yield anna.confirm()
        yield bert.confirm()
        yield flock.described()
        yield bert.beat(subscribed_topic_regex="", subscribed_topic_names=[topic])
        yield bert.beat(subscribed_topic_regex="[")
        yield flock.described()
        yield anna.leave()
        yield flock.described()
        yield flock.journal()

    both.same(script)


def test_assignments_keep_a_distance(both: Both, new_name: Names) -> None:
    """Within the interval a new member joins without an assignment."""
    group, topic = new_name("interval"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        flock = Flock(side, group, **{"consumer.assignment.interval.ms": "15000"})
        anna, bert = flock.bird("anna", [topic]), flock.bird("bert", [topic])
        yield anna.join()
        yield bert.join()
        yield anna.confirm()
        yield flock.described()
        yield anna.leave()
        yield bert.confirm()
        yield flock.described()
        flock.configure(**{"consumer.assignment.interval.ms": "0"})
        yield bert.confirm()
        yield flock.described()

    both.same(script)


def test_offsets_of_members(both: Both, new_name: Names) -> None:
    group, topic = new_name("offsets"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 4)
        flock = Flock(side, group)
        anna, bert = flock.bird("anna", [topic]), flock.bird("bert", [topic])
        anna.join()
        yield commit(side, group, topic, "anna", anna.epoch)
        bert.join()
        anna.beat()
        anna.confirm()
        bert.confirm()
        for member, epoch in (("anna", 3), ("anna", 2), ("anna", 1), ("anna", 4), ("bert", 3), ("bert", 2), ("", -1)):
            for partition in (0, 3):
                yield member, epoch, partition, commit(side, group, topic, member, epoch, partition)
            yield member, epoch, fetch(side, group, topic, member or None, epoch)
        yield commit(side, group, topic, "nobody", 3)
        yield fetch(side, group, topic, "nobody", 3)
        yield commit(side, group, topic, "anna", 3, version=8)
        yield side.call(DeleteGroupsRequest(groups_names=[group]), 2)
        bert.leave()
        anna.leave()
        yield commit(side, group, topic, "", -1)
        yield commit(side, group, topic, "anna", 3)
        yield side.call(DeleteGroupsRequest(groups_names=[group]), 2)
        yield flock.described()

    both.same(script)


def commit(side: Side, group: str, topic: str, member: str, epoch: int, partition: int = 0, version: int = 9) -> Plain:
    part = OffsetCommitRequest.Topic.Partition(partition_index=partition, committed_offset=7, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=[OffsetCommitRequest.Topic(name=topic, partitions=[part])],
    )
    return side.call(request, version)


def fetch(side: Side, group: str, topic: str, member: str | None, epoch: int) -> Plain:
    wanted = OffsetFetchRequest.Group
    asked = wanted(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        topics=[wanted.Topics(name=topic, partition_indexes=[0, 3])],
    )
    return side.call(OffsetFetchRequest(groups=[asked]), 9)
