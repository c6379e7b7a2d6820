"""Share groups: members, descriptions and offsets, the same answers as a real Kafka, for good and bad input."""

from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.same import Both, Plain, Side
from tests.support.requests.shares import GROUP_CONFIG, LEAVE, ShareTalk

from ottla.wire.messages.cluster.update_features import UpdateFeaturesRequest
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.shares.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest


def test_a_member_comes_and_goes(both: Both, new_name: Names) -> None:
    topic, other, name = new_name("topic"), new_name("other"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 3)
        side.create(other, 1)
        group = ShareTalk(side, name)
        yield group.describe()
        yield group.beat("anna", 0, topic)
        yield group.join("anna", topic)
        yield group.beat("anna", 2)
        yield group.beat("anna", 2, topic)
        yield group.describe()
        yield group.describe(include_authorized_operations=True)
        yield group.listed()
        yield group.offsets()
        # A repeated heartbeat, and ones of another time.
        yield group.beat("anna", 1)
        yield group.beat("anna", 3)
        yield group.beat("anna", 0, topic)
        # Other topics.
        answer = group.beat("anna", 2, topic, other)
        yield answer
        yield group.stay("anna", answer, lambda found: len(found["assignment"]["topic_partitions"]) == 2)
        answer = group.beat("anna", 4, other)
        yield answer
        yield group.beat("anna", answer["member_epoch"], rack_id="here")
        yield group.describe()
        yield group.beat("anna", LEAVE)
        yield group.beat("anna", LEAVE)
        yield group.beat("anna", answer["member_epoch"])
        yield group.describe()
        yield group.listed()
        yield group.offsets()
        yield group.delete()
        yield group.describe()
        yield group.listed()
        yield group.offsets()
        yield group.beat("anna", LEAVE)
        yield group.beat("anna", 1)

    both.same(script)


def test_many_members(both: Both, new_name: Names) -> None:
    """Who gets what depends on hashes; how much everyone gets does not."""
    topic, name = new_name("topic"), new_name("group")

    def sizes(group: ShareTalk, *members: str) -> Plain:
        """How many partitions each has, and the epoch they have come to."""
        answers = [group.beat(member, 0, topic) for member in members]
        answers = [group.beat(each["member_id"], each["member_epoch"], topic) for each in answers]
        counts = [[len(one["partitions"]) for one in each["assignment"]["topic_partitions"]] for each in answers]
        return sorted(counts), answers[-1]["member_epoch"]

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 4)
        group = ShareTalk(side, name)
        group.join("a", topic)
        yield sizes(group, *"ab")
        yield sizes(group, *"abcd")
        yield sizes(group, *"abcdef")
        yield group.beat("b", LEAVE)
        yield sizes(group, *"acdef")

    both.same(script)


BAD_BEATS: dict[str, dict[str, object]] = {
    "no member": {"member_id": ""},
    "a member too long": {"member_id": "m" * 37},
    "no group": {"group_id": ""},
    "an empty rack": {"rack_id": ""},
    "no topics": {"subscribed_topic_names": None},
    "an empty list of topics": {"subscribed_topic_names": []},
    "an epoch below all": {"member_epoch": -2},
    "an unknown group": {"member_epoch": 5},
    "an unknown group to leave": {"member_epoch": -1},
    "all of it": {"member_id": "", "group_id": "", "rack_id": "", "member_epoch": -7},
    "a topic that does not exist": {"subscribed_topic_names": ["missing"]},
    "a topic that cannot exist": {"subscribed_topic_names": ["a/b"]},
    "a long member": {"member_id": "m" * 36, "subscribed_topic_names": ["missing"]},
}


@pytest.mark.parametrize("case", BAD_BEATS)
def test_odd_heartbeats(both: Both, new_name: Names, case: str) -> None:
    name = new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        group = ShareTalk(side, name)
        yield group.beat("anna", 0, **BAD_BEATS[case])
        yield group.describe()

    both.same(script)


def test_limits_and_settings(both: Both, new_name: Names) -> None:
    topic, name = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic)
        group = ShareTalk(side, name, **{"share.heartbeat.interval.ms": "6000"})
        yield group.join("anna", topic)
        yield group.beat("otto", 7)
        yield group.beat("otto", LEAVE)

    both.same(script)


def test_a_topic_grows_and_goes(both: Both, new_name: Names) -> None:
    topic, name = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        group = ShareTalk(side, name)
        answer = group.join("anna", topic)
        yield answer
        more = CreatePartitionsRequest.Topic(name=topic, count=3, assignments=None)
        side.call(CreatePartitionsRequest(topics=[more], timeout_ms=5000, validate_only=False), 3)
        side.settle()

        def has_three(found: Plain) -> bool:
            return [len(each["partitions"]) for each in found["assignment"]["topic_partitions"]] == [3]

        answer = group.stay("anna", group.beat("anna", answer["member_epoch"]), has_three)
        yield answer
        yield group.offsets()
        side.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 5)
        side.settle()
        answer = group.stay("anna", answer, lambda found: not found["assignment"]["topic_partitions"])
        yield answer
        yield group.describe()
        yield group.offsets()

    both.same(script)


@pytest.mark.parametrize("version", versions_of(DescribeShareGroupOffsetsRequest))
def test_describe_offsets(both: Both, new_name: Names, version: int) -> None:
    topic, name = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        group = ShareTalk(side, name)
        yield group.offsets(version=version)
        yield group.alter({topic: {0: 0, 1: 5}})
        yield group.offsets(version=version)
        yield group.offsets({topic: [0, 1, 7, -1], "missing": [0, 3]}, version=version)
        yield group.offsets({}, version=version)
        yield group.offsets({topic: []}, version=version)
        asked = DescribeShareGroupOffsetsRequest.Group
        groups = [asked(group_id="", topics=None), asked(group_id="no-such-group", topics=None)]
        yield side.call(DescribeShareGroupOffsetsRequest(groups=groups), version)
        yield side.call(DescribeShareGroupOffsetsRequest(groups=[]), version)

    both.same(script)


def test_alter_offsets(both: Both, new_name: Names) -> None:
    topic, name = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        group = ShareTalk(side, name)
        yield group.alter({topic: {0: 3}, "missing": {0: 1}})
        yield group.describe()
        yield group.listed()
        yield group.alter({topic: {0: 4, 2: 1, 1: -5}})
        yield group.offsets()
        yield group.alter({})
        yield group.alter({"missing": {0: 1}})
        yield group.alter({topic: {9: 1}})
        yield group.offsets()
        answer = group.join("anna", topic)
        yield answer
        yield group.alter({topic: {0: 9}})
        yield group.delete_offsets(topic)
        yield group.delete()
        yield group.offsets()
        yield group.beat("anna", LEAVE)
        yield group.alter({topic: {0: 9}})
        yield group.offsets()
        group.name = ""
        yield group.alter({topic: {0: 9}})
        group.name = name
        yield group.alter({topic: {-1: 0}}) | {"error_message": "SOME"}

    both.same(script)


def test_delete_offsets(both: Both, new_name: Names) -> None:
    topic, other, name = new_name("topic"), new_name("other"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        side.create(other, 1)
        group = ShareTalk(side, name)
        yield group.delete_offsets(topic)
        yield group.alter({topic: {0: 3, 1: 4}})
        yield group.delete_offsets(other, "missing")
        yield group.delete_offsets(topic, other)
        yield group.offsets()
        yield group.offsets({topic: [0, 1]})
        yield group.delete_offsets(topic)
        yield group.delete_offsets()
        yield group.alter({topic: {0: 5}})
        yield group.delete()
        yield group.delete()
        yield group.offsets({topic: [0, 1]})
        group.name = ""
        yield group.delete_offsets(topic)
        yield group.describe()
        yield group.describe(group_ids=[])

    both.same(script)


def test_groups_of_other_kinds(both: Both, new_name: Names) -> None:
    topic, name, shares = new_name("topic"), new_name("group"), new_name("shares")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        group = ShareTalk(side, name)
        commit = OffsetCommitRequest.Topic
        each = commit.Partition(partition_index=0, committed_offset=1, committed_metadata="")
        committed = OffsetCommitRequest(group_id=name, member_id="", topics=[commit(name=topic, partitions=[each])])
        yield side.call(committed, 9)
        yield group.beat("anna", 0, topic)
        yield group.beat("anna", LEAVE)
        yield group.describe()
        yield group.alter({topic: {0: 1}})
        yield group.delete_offsets(topic)
        yield group.offsets()
        # And the other way about.
        group = ShareTalk(side, shares)
        group.join("anna", topic)
        committed.group_id = shares
        yield side.call(committed, 9)
        fetched = OffsetFetchRequest.Group(group_id=shares, topics=None)
        yield side.call(OffsetFetchRequest(groups=[fetched]), 9)
        yield side.call(DescribeGroupsRequest(groups=[shares]), 6)
        yield side.call(DescribeGroupsRequest(groups=[shares]), 5)

    both.same(script)


def test_the_feature_is_off(both: Both, new_name: Names) -> None:
    topic, name = new_name("topic"), new_name("group")

    def level(side: Side, number: int) -> None:
        kind = 1 if number else 2  # an upgrade, or a downgrade that loses nothing
        key = UpdateFeaturesRequest.FeatureUpdateKey
        update = key(feature="share.version", max_version_level=number, upgrade_type=kind)
        answer = side.call(UpdateFeaturesRequest(feature_updates=[update]), 2)
        assert answer["error_code"] == 0, answer
        side.settle()

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic)
        group = ShareTalk(side, name)
        level(side, 0)
        try:
            yield group.beat("anna", 0, topic)
            yield group.beat("", 0)
            yield group.describe()
            yield group.offsets()
            yield group.alter({topic: {0: 1}})
            yield group.delete_offsets(topic)
        finally:
            level(side, 1)

    both.same(script)


def test_a_full_group(both: Both, new_name: Names) -> None:
    topic, name = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic)
        group = ShareTalk(side, name, **{"share.assignment.interval.ms": "1000"})
        for number in range(200):
            assert group.beat(f"member-{number}", 0, topic)["error_code"] == 0
        yield group.beat("one-too-many", 0, topic)
        yield group.beat("member-0", 0, topic)["error_code"]
        yield group.beat("one-too-many", 5)
        yield group.beat("member-1", LEAVE)
        yield group.beat("one-too-many", 0, topic)["error_code"]

    both.same(script)


CONFIGS = [
    ("share.session.timeout.ms", ("44999", "45000", "60000", "60001", "0", "x")),
    ("share.heartbeat.interval.ms", ("4999", "5000", "15000", "15001", "-1")),
    ("share.assignment.interval.ms", ("-1", "0", "15000", "15001")),
    ("share.record.lock.duration.ms", ("14999", "15000", "60000", "60001")),
    ("share.delivery.count.limit", ("1", "2", "10", "11")),
    ("share.partition.max.record.locks", ("99", "100", "4000", "10000", "10001")),
    (
        "share.auto.offset.reset",
        ("latest", "earliest", "none", "by_duration:PT1H", "by_duration:-PT1H", "by_duration:"),
    ),
    ("share.isolation.level", ("read_committed", "READ_COMMITTED", "none")),
    ("share.renew.acknowledge.enable", ("true", "false", "perhaps")),
]


def test_settings_of_groups(both: Both, new_name: Names) -> None:
    """What may be set, and Kafka's words for what may not."""
    name = new_name("group")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource

    def script(side: Side) -> Iterator[Plain]:
        for config, values in CONFIGS:
            for value in values:
                change = resource.AlterableConfig(name=config, config_operation=0, value=value)
                about = resource(resource_type=GROUP_CONFIG, resource_name=name, configs=[change])
                yield side.call(IncrementalAlterConfigsRequest(resources=[about], validate_only=True), 1)

    both.same(script)
