"""Reading and cutting logs: the same request gets the same answer from Ottla as from a real Kafka."""

from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names, versions_of
from tests.compat.test_same_answer_produce import NOW, UNKNOWN_ID, idempotent, plain_batch, produce
from tests.support.same import Both, Plain, Side

from ottla.records.batch import read_header
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import Record, records
from ottla.wire.messages.delete_records import DeleteRecordsRequest
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.describe_producers import DescribeProducersRequest
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.list_offsets import ListOffsetsRequest
from ottla.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

Topic = FetchRequest.Topic
BIG = 1 << 20
UNCOMPRESSED_BYTES = len(plain_batch())


def fill(side: Side, name: str, batches: int = 4) -> None:
    """Batches of three records: offsets 0 to 2, 3 to 5, ..."""
    side.create(name)
    for _ in range(batches):
        assert produce(side, 9, name, plain_batch())["responses"][0]["partition_responses"][0]["error_code"] == 0


def fetch(side: Side, version: int, name: str, offset: int, **options: int) -> Plain:
    """One partition, without a session. Options are fields of the request or of the partition."""
    return side.call(fetch_request(side, name, offset, **options), version)


def fetch_request(side: Side, name: str, offset: int, **options: int) -> FetchRequest:
    of_partition = ("partition_max_bytes", "current_leader_epoch", "last_fetched_epoch", "partition")
    wanted = {"partition": 0, "partition_max_bytes": BIG}
    wanted |= {key: value for key, value in options.items() if key in of_partition}
    partition = Topic.Partition(fetch_offset=offset, **wanted)
    topic = Topic(topic=name, topic_id=side.ids.get(name, UNKNOWN_ID), partitions=[partition])
    request = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": BIG}
    request |= {key: value for key, value in options.items() if key not in of_partition}
    return FetchRequest(topics=[topic], **request)


@pytest.mark.parametrize("version", versions_of(FetchRequest))
def test_fetch(both: Both, new_name: Names, version: int) -> None:
    name = new_name("fetch")

    def script(side: Side) -> Iterator[Plain]:
        fill(side, name)
        for offset in (0, 1, 3, 11, 12):  # from the middle of a batch comes the whole batch; 12 is the end
            yield fetch(side, version, name, offset)
        yield fetch(side, version, name, 13)  # out of range
        yield fetch(side, version, name, -1)
        yield fetch(side, version, name + "-never", 0)
        yield fetch(side, version, name, 0, partition=7)
        yield fetch(side, version, name, 0, isolation_level=1)
        # A batch larger than the limit is given whole if it is the first, and cut off if not.
        for limit in (0, 1, UNCOMPRESSED_BYTES, UNCOMPRESSED_BYTES + 1, 2 * UNCOMPRESSED_BYTES):
            yield fetch(side, version, name, 0, partition_max_bytes=limit)
            yield fetch(side, version, name, 4, max_bytes=limit)
        if version >= 9:
            for epoch in (-1, 0, 1):
                yield fetch(side, version, name, 0, current_leader_epoch=epoch)
        if version >= 12:
            for epoch in (0, 1):
                yield fetch(side, version, name, 3, last_fetched_epoch=epoch)

    both.same(script)


@pytest.mark.parametrize("codec", list(Codec))
def test_bytes_are_kept(both: Both, new_name: Names, codec: Codec) -> None:
    """What comes out are the bytes that went in, with offset and leader epoch stamped, just as Kafka does it."""
    name = new_name("bytes")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name)
        headers = (("a", b"1"), ("b", None), ("", b""))
        for at in range(3):
            sent = [Record(0, NOW + at, b"k", b"v" * 500, headers), Record(1, NOW - at, None, None, ())]
            yield produce(side, 9, name, build_batch(sent, codec=codec))
        yield fetch(side, 11, name, 0)

    both.same(script)


def test_recompressed(both: Both, new_name: Names) -> None:
    """A topic with a codec of its own stores every batch in it; sizes differ between libraries, contents do not."""
    name = new_name("recompressed")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, **{"compression.type": "gzip"})
        for codec in Codec:
            yield produce(side, 9, name, plain_batch(codec=codec))
        answer = side.answer(fetch_request(side, name, 0), 11)
        assert isinstance(answer, FetchResponse)
        view = memoryview(answer.responses[0].partitions[0].records)
        found = []
        while view:
            header = read_header(view)
            found.append((header.base_offset, header.codec, header.count, list(records(view))[: header.count]))
            view = view[header.size_bytes :]
        yield found

    both.same(script)


def test_fetch_by_id(both: Both, new_name: Names) -> None:
    name = new_name("by-id")

    def script(side: Side) -> Iterator[Plain]:
        fill(side, name, 1)
        for topic_id in (side.ids[name], UNKNOWN_ID, bytes(16)):
            partition = Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=BIG)
            topic = Topic(topic_id=topic_id, partitions=[partition])
            yield side.call(FetchRequest(max_wait_ms=0, min_bytes=1, topics=[topic]), 13)

    both.same(script)


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_sessions(both: Both, new_name: Names, version: int) -> None:
    """Incremental sessions: opened, used, changed, closed, and used wrongly."""
    name = new_name("session")

    def script(side: Side) -> Iterator[Plain]:
        fill(side, name + "-a")
        fill(side, name + "-b", 1)

        def want(end: str, offset: int) -> FetchRequest.Topic:
            partition = Topic.Partition(partition=0, fetch_offset=offset, partition_max_bytes=BIG)
            return Topic(topic=name + end, topic_id=side.ids[name + end], partitions=[partition])

        def ask(session: int, epoch: int, *topics: FetchRequest.Topic, forget: str = "") -> FetchResponse:
            forgotten = FetchRequest.ForgottenTopic
            gone = [forgotten(topic=name + forget, topic_id=side.ids[name + forget], partitions=[0])] if forget else []
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                session_id=session,
                session_epoch=epoch,
                topics=list(topics),
                forgotten_topics_data=gone,
            )
            answer = side.answer(request, version)
            assert isinstance(answer, FetchResponse)
            return answer

        first = ask(0, 0, want("-a", 0), want("-b", 0))
        yield side.plain(first, version)
        session = first.session_id
        yield side.plain(ask(session, 1, want("-a", 12), want("-b", 3)), version)
        yield side.plain(ask(session, 2), version)  # nothing new: nothing is said
        produce(side, 9, name + "-b", plain_batch())
        yield side.plain(ask(session, 3), version)
        yield side.plain(ask(session, 4, forget="-b"), version)
        yield side.plain(ask(session, 4), version)  # the epoch was used
        yield side.plain(ask(session + 12345, 1), version)
        yield side.plain(ask(session, -1), version)  # closes
        yield side.plain(ask(session, 5), version)
        yield side.plain(ask(0, -1, want("-b", 0)), version)  # sessionless

    both.same(script)


@pytest.mark.parametrize("version", versions_of(ListOffsetsRequest))
def test_list_offsets(both: Both, new_name: Names, version: int) -> None:
    name = new_name("list")
    wanted = ListOffsetsRequest.Topic

    def script(side: Side) -> Iterator[Plain]:
        side.create(name)
        side.create(name + "-empty")
        times = [[5000, 9000, 7000], [1000, 2000], [9000, 8000]]
        for batch in times:
            sent = [Record(at, NOW + ms, b"k", b"v", ()) for at, ms in enumerate(batch)]
            produce(side, 9, name, build_batch(sent, codec=Codec.LZ4))

        def ask(topic: str, timestamp: int, partition: int = 0, epoch: int = -1, isolation: int = 0) -> Plain:
            one = wanted.Partition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
            topics = [wanted(name=topic, partitions=[one])]
            request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics, timeout_ms=5000)
            answer = side.call(request, version)
            for each in answer["topics"][0]["partitions"]:
                each["timestamp"] -= NOW if each["timestamp"] > 0 else 0
            return answer

        special = [-1, -2] + [-3] * (version >= 7) + [-4] * (version >= 8) + [-5] * (version >= 9)
        special += [-6] * (version >= 11)
        for timestamp in special:
            yield ask(name, timestamp)
            yield ask(name + "-empty", timestamp)
        for ms in (0, 999, 1000, 5000, 5001, 7000, 8999, 9000, 9001):
            yield ask(name, NOW + ms)
        yield ask(name + "-never", -1)
        yield ask(name, -1, partition=9)
        if version >= 2:
            yield ask(name, -1, isolation=1)
        if version >= 4:
            for epoch in (0, 1):
                yield ask(name, -1, epoch=epoch)

    both.same(script)


def test_list_offsets_of_the_wrong_version(both: Both, new_name: Names) -> None:
    """A special timestamp in a version that does not know it."""
    name = new_name("special")
    wanted = ListOffsetsRequest.Topic

    def script(side: Side) -> Iterator[Plain]:
        fill(side, name)
        for version, timestamp in ((6, -3), (7, -4), (8, -5), (10, -6), (11, -7), (11, -100)):
            topics = [wanted(name=name, partitions=[wanted.Partition(partition_index=0, timestamp=timestamp)])]
            yield side.call(ListOffsetsRequest(replica_id=-1, topics=topics), version)
        twice = [wanted(name=name, partitions=[wanted.Partition(partition_index=0, timestamp=-1)] * 2)]
        yield side.call(ListOffsetsRequest(replica_id=-1, topics=twice), 7)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(OffsetForLeaderEpochRequest))
def test_offset_for_leader_epoch(both: Both, new_name: Names, version: int) -> None:
    name = new_name("epoch")
    wanted = OffsetForLeaderEpochRequest.OffsetForLeaderTopic

    def script(side: Side) -> Iterator[Plain]:
        fill(side, name)
        side.create(name + "-empty")
        cases = [(name, 0, -1, 0), (name, 0, -1, 5), (name, 0, 0, 0), (name, 0, 1, 0), (name, 0, -1, -1)]
        cases += [
            (name + "-empty", 0, -1, 0),
            (name + "-empty", 0, -1, 1),
            (name, 3, -1, 0),
            (name + "-never", 0, -1, 0),
        ]
        for topic, partition, current, epoch in cases:
            one = wanted.OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
            yield side.call(OffsetForLeaderEpochRequest(topics=[wanted(topic=topic, partitions=[one])]), version)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(DeleteRecordsRequest))
def test_delete_records(both: Both, new_name: Names, version: int) -> None:
    name = new_name("delete-records")
    wanted = DeleteRecordsRequest.Topic

    def script(side: Side) -> Iterator[Plain]:
        fill(side, name)

        def delete(topic: str, offset: int, partition: int = 0) -> Plain:
            one = wanted.Partition(partition_index=partition, offset=offset)
            return side.call(
                DeleteRecordsRequest(topics=[wanted(name=topic, partitions=[one])], timeout_ms=5000), version
            )

        yield delete(name, 4)
        yield fetch(side, 11, name, 3)
        yield fetch(side, 11, name, 4)
        yield delete(name, 2)  # already gone
        yield delete(name, 13)
        yield delete(name, -5)
        yield delete(name, 5, partition=4)
        yield delete(name + "-never", 1)
        yield delete(name, -1)  # everything
        yield fetch(side, 11, name, 12)
        side.create(name + "-compacted", **{"cleanup.policy": "compact"})
        yield delete(name + "-compacted", 0)

    both.same(script)


def test_describe_producers(both: Both, new_name: Names) -> None:
    name = new_name("producers")
    wanted = DescribeProducersRequest.TopicRequest

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, 2)
        for _ in range(2):
            producer = idempotent(side)
            batch = plain_batch(producer_id=producer, producer_epoch=0, base_sequence=0)
            produce(side, 9, name, batch)
        topics = [wanted(name=name, partition_indexes=[0, 1, 7]), wanted(name=name + "-never", partition_indexes=[0])]
        yield side.call(DescribeProducersRequest(topics=topics), 0)
        yield side.call(DescribeProducersRequest(topics=[wanted(name="not good", partition_indexes=[0])]), 0)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(DescribeLogDirsRequest))
def test_describe_log_dirs(both: Both, new_name: Names, version: int) -> None:
    name = new_name("log-dirs")
    wanted = DescribeLogDirsRequest.DescribableLogDirTopic

    def script(side: Side) -> Iterator[Plain]:
        fill(side, name)
        yield side.call(DescribeLogDirsRequest(topics=[wanted(topic=name, partitions=[0])]), version)
        yield side.call(DescribeLogDirsRequest(topics=[wanted(topic=name, partitions=[0, 5])]), version)
        yield side.call(DescribeLogDirsRequest(topics=[wanted(topic=name + "-never", partitions=[0])]), version)
        yield side.call(DescribeLogDirsRequest(topics=[]), version)
        everything = side.call(DescribeLogDirsRequest(topics=None), version)
        yield [each for each in everything["results"][0]["topics"] if each["name"] == name]

    both.same(script)
