"""Topics and metadata: the same request gets the same answer from Ottla as from a real Kafka, in every version."""

from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.same import Both, Plain, Side

from ottla.model.ids import NO_ID
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

Topic = CreateTopicsRequest.CreatableTopic
UNKNOWN_ID = bytes(range(16))


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> Topic:
    pairs = [Topic.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    return Topic(name=name, num_partitions=partitions, replication_factor=replicas, assignments=[], configs=pairs)


def assigned(name: str, *replicas: list[int], partitions: int = -1, factor: int = -1) -> Topic:
    assignment = Topic.CreatableReplicaAssignment
    pairs = [assignment(partition_index=at, broker_ids=brokers) for at, brokers in enumerate(replicas)]
    return Topic(name=name, num_partitions=partitions, replication_factor=factor, assignments=pairs, configs=[])


@pytest.mark.parametrize("version", versions_of(CreateTopicsRequest))
def test_create_topics(both: Both, new_name: Names, version: int) -> None:
    name = new_name("create")

    def script(side: Side) -> Iterator[Plain]:
        good = [
            topic(name, 3),
            topic(name + ".compacted", **{"cleanup.policy": "compact", "segment.bytes": "2000000"}),
            assigned(name + "-assigned", [1], [1]),
        ]
        if version >= 4:
            good.append(topic(name + "-defaults", -1, -1))
        yield side.call(CreateTopicsRequest(topics=good, validate_only=True), version)
        yield side.call(CreateTopicsRequest(topics=good), version)
        yield side.call(CreateTopicsRequest(topics=good), version)  # they exist now

    both.same(script)


BAD_TOPICS = {
    "empty name": topic(""),
    "one dot": topic("."),
    "two dots": topic(".."),
    "blank in the name": topic("a b"),
    "slash in the name": topic("a/b"),
    "name too long": topic("n" * 250),
    "no partitions": topic("bad", 0),
    "negative partitions": topic("bad", -7),
    "no replicas": topic("bad", 1, 0),
    "negative replicas": topic("bad", 1, -3),
    "too many replicas": topic("bad", 1, 2),
    "unknown config": topic("bad", **{"no.such.config": "1"}),
    "config of the wrong type": topic("bad", **{"retention.ms": "soon"}),
    "config out of range": topic("bad", **{"segment.bytes": "1"}),
    "config not among the choices": topic("bad", **{"cleanup.policy": "burn"}),
    "config null": topic("bad", **{"retention.ms": None}),
    "bad compression": topic("bad", **{"compression.type": "rar"}),
    "bad timestamp type": topic("bad", **{"message.timestamp.type": "never"}),
    "bad ratio": topic("bad", **{"min.cleanable.dirty.ratio": "1.5"}),
    "bad boolean": topic("bad", **{"preallocate": "maybe"}),
    "lag bounds crossed": topic("bad", **{"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "10"}),
    "local retention above retention": topic("bad", **{"local.retention.ms": "100", "retention.ms": "10"}),
    "assigned to an unknown broker": assigned("bad", [7]),
    "assigned twice to one broker": assigned("bad", [1, 1]),
    "assigned to nobody": assigned("bad", []),
    "assignment and partitions": assigned("bad", [1], partitions=1),
    "assignment and replicas": assigned("bad", [1], factor=1),
    "internal name": topic("__cluster_metadata"),
}


@pytest.mark.parametrize("case", BAD_TOPICS)
def test_create_topics_refused(both: Both, case: str) -> None:
    def script(side: Side) -> Iterator[Plain]:
        for version in (2, 4, 5, 7):
            yield side.call(CreateTopicsRequest(topics=[BAD_TOPICS[case]], validate_only=version != 7), version)

    both.same(script)


def test_create_topics_twice_in_one_request(both: Both, new_name: Names) -> None:
    name = new_name("twice")

    def script(side: Side) -> Iterator[Plain]:
        yield side.call(CreateTopicsRequest(topics=[topic(name), topic(name), topic(name + "-other")]), 7)

    both.same(script)


def test_create_topics_that_collide(both: Both, new_name: Names) -> None:
    """A dot and an underscore are one character in a metric's name, so Kafka refuses the second of such a pair."""
    name = new_name("collide")

    def script(side: Side) -> Iterator[Plain]:
        yield side.call(CreateTopicsRequest(topics=[topic(name + "_x")]), 7)
        yield side.call(CreateTopicsRequest(topics=[topic(name + ".x")]), 7)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(DeleteTopicsRequest))
def test_delete_topics(both: Both, new_name: Names, version: int) -> None:
    name = new_name("delete")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name)
        side.create(name + "-by-id")
        state = DeleteTopicsRequest.DeleteTopicState
        names = [name, name + "-never", name]
        if version < 6:
            yield side.call(DeleteTopicsRequest(topic_names=names, timeout_ms=30_000), version)
        else:
            topics = [state(name=each, topic_id=NO_ID) for each in names[:2]]
            topics += [state(topic_id=side.ids[name + "-by-id"]), state(topic_id=UNKNOWN_ID)]
            yield side.call(DeleteTopicsRequest(topics=topics, timeout_ms=30_000), version)
            both_given = state(name=name, topic_id=UNKNOWN_ID)
            yield side.call(DeleteTopicsRequest(topics=[both_given], timeout_ms=30_000), version)
            neither = state(topic_id=NO_ID)
            yield side.call(DeleteTopicsRequest(topics=[neither], timeout_ms=30_000), version)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(CreatePartitionsRequest))
def test_create_partitions(both: Both, new_name: Names, version: int) -> None:
    name = new_name("grow")
    wanted = CreatePartitionsRequest.Topic

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, 2)

        def grow(topic: str, count: int, *replicas: list[int], dry: bool = False) -> Plain:
            assignments = [wanted.Assignment(broker_ids=brokers) for brokers in replicas] or None
            topics = [wanted(name=topic, count=count, assignments=assignments)]
            return side.call(CreatePartitionsRequest(topics=topics, timeout_ms=30_000, validate_only=dry), version)

        yield grow(name, 4, dry=True)
        yield grow(name, 4)
        yield grow(name, 4)  # already
        yield grow(name, 3)
        yield grow(name, 0)
        yield grow(name, -1)
        yield grow(name + "-never", 4)
        yield grow(name, 6, [1], [1])
        yield grow(name, 8, [1])  # one assignment too few
        yield grow(name, 7, [9])
        yield grow(name, 7, [1, 1])
        yield grow(name, 7, [])
        twice = [wanted(name=name, count=9, assignments=None)] * 2
        yield side.call(CreatePartitionsRequest(topics=twice, timeout_ms=30_000, validate_only=False), version)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(MetadataRequest))
def test_metadata(both: Both, new_name: Names, version: int) -> None:
    name = new_name("meta")
    wanted = MetadataRequest.Topic

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, 3)

        def ask(*topics: MetadataRequest.Topic, **options: bool) -> Plain:
            request = MetadataRequest(topics=list(topics), allow_auto_topic_creation=False, **options)
            return side.call(request, version)

        if version >= 4:  # before, an unknown topic would be made by asking
            yield ask(wanted(name=name), wanted(name=name + "-never"))
            yield ask(wanted(name="not good"))
        yield ask(wanted(name=name))
        if version >= 1:
            yield ask()  # no topics at all; v0 means all of them
        if version >= 8:
            cluster = version <= 10
            yield ask(
                wanted(name=name),
                include_topic_authorized_operations=True,
                include_cluster_authorized_operations=cluster,
            )
        if version >= 10:
            yield ask(wanted(name=None, topic_id=side.ids[name]))
            yield ask(wanted(name=None, topic_id=UNKNOWN_ID))
            yield ask(wanted(name=name, topic_id=side.ids[name]))

    both.same(script)


@pytest.mark.parametrize("version", [0, 3, 4, 12])
def test_metadata_makes_topics(both: Both, new_name: Names, version: int) -> None:
    """Asking for an unknown topic makes it where that is allowed; the first answer says that it is not there yet."""
    name = new_name("auto")

    def script(side: Side) -> Iterator[Plain]:
        topics = [MetadataRequest.Topic(name=each) for each in (name, "not good")]
        first = side.call(MetadataRequest(topics=topics, allow_auto_topic_creation=True), version)
        yield sorted(first["topics"], key=lambda each: str(each["name"]))
        side.wait_for_leaders(name, 1)
        topics = [MetadataRequest.Topic(name=name)]
        yield side.call(MetadataRequest(topics=topics, allow_auto_topic_creation=True), version)

    both.same(script)


def test_describe_topic_partitions(both: Both, new_name: Names) -> None:
    name = new_name("describe")
    wanted = DescribeTopicPartitionsRequest

    def script(side: Side) -> Iterator[Plain]:
        side.create(name + "-a", 3)
        side.create(name + "-b", 3)
        topics = [wanted.TopicRequest(name=name + end) for end in ("-a", "-b", "-never")]
        yield side.call(wanted(topics=topics), 0)
        yield side.call(wanted(topics=topics, response_partition_limit=4), 0)
        cursor = wanted.Cursor(topic_name=name + "-b", partition_index=1)
        yield side.call(wanted(topics=topics, response_partition_limit=1, cursor=cursor), 0)
        cursor = wanted.Cursor(topic_name=name + "-a", partition_index=-1)
        yield side.call(wanted(topics=topics, cursor=cursor), 0)
        yield side.call(wanted(topics=[wanted.TopicRequest(name="not good")]), 0)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(DescribeClusterRequest))
def test_describe_cluster(both: Both, version: int) -> None:
    def script(side: Side) -> Iterator[Plain]:
        yield side.call(DescribeClusterRequest(include_cluster_authorized_operations=False), version)
        yield side.call(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
        if version >= 1:
            for endpoint in (0, 2, 9):
                request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=endpoint)
                yield side.call(request, version)
        if version >= 2:
            request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
            yield side.call(request, version)

    both.same(script)
