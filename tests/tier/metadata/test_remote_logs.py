"""The remote logs of a broker: what of the metadata topic each of them gets, in any order of assignments and reads."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.tier.metadata.making import DELETING, FINISHED, names, segment, update
from tests.tier.metadata.test_snapshot import content

from ottla.tier.metadata.metadata_topic import metadata_partition
from ottla.tier.metadata.records import encode
from ottla.tier.metadata.remote_log import RemoteLog
from ottla.tier.metadata.remote_logs import RefusedRecord, RemoteLogs
from ottla.tier.metadata.segment import RemoteLogEvent, RemoteSegmentMetadata, TopicIdPartition
from ottla.tier.metadata.snapshot import RemoteLogSnapshot, decode_log, encode_log
from ottla.tier.metadata.states import RemoteMetadataError

COUNT = 2
PARTITIONS = [TopicIdPartition("orders", b"\x22" * 16, number) for number in range(5)]
FIRST, SECOND = PARTITIONS[:2]
OTHER_TOPIC = TopicIdPartition("orders", b"\x33" * 16, 0)


def of(partition: TopicIdPartition, event: RemoteLogEvent) -> RemoteLogEvent:
    """The same event, of another partition."""
    if isinstance(event, RemoteSegmentMetadata):
        fields = {name: getattr(event, name) for name in event.__slots__}
        return RemoteSegmentMetadata(**{**fields, "partition": partition})
    return event._replace(partition=partition)


COPY = [segment("a", 0, 9), update("a", FINISHED)]


def read(logs: RemoteLogs, number: int, topic: list[bytes], begin: int = 0) -> list[RefusedRecord]:
    """Read a partition of the metadata topic to its end."""
    return logs.apply(number, list(enumerate(topic))[begin:], begin=begin, end=len(topic))


def test_each_log_gets_its_own_records() -> None:
    logs = RemoteLogs(1)
    assert logs.metadata_partitions() == [] and logs.read_from(0) is None
    topic = [encode(of(partition, event)) for event in COPY for partition in (FIRST, SECOND, OTHER_TOPIC)]
    assert (logs.assign(FIRST), logs.assign(OTHER_TOPIC)) == (0, 0)
    assert logs.metadata_partitions() == [0] and logs.read_from(0) == 0
    assert not logs.has_reached(FIRST, 1) and logs.has_reached(FIRST, 0)
    assert read(logs, 0, topic) == []
    assert [len(logs[partition]) for partition in (FIRST, OTHER_TOPIC)] == [1, 1]
    assert logs.has_reached(FIRST, 6) and not logs.has_reached(FIRST, 7) and logs.read_from(0) == 6
    with pytest.raises(KeyError):
        logs[SECOND]
    logs.unassign(FIRST)
    logs.unassign(FIRST)
    assert logs.metadata_partitions() == [0]
    logs.unassign(OTHER_TOPIC)
    assert logs.metadata_partitions() == [] and read(logs, 0, topic) == []


def test_a_log_that_comes_later_sends_the_reader_back() -> None:
    logs = RemoteLogs(1)
    topic = [encode(of(partition, event)) for event in COPY for partition in (FIRST, SECOND)]
    logs.assign(FIRST)
    read(logs, 0, topic)
    logs.assign(SECOND)
    logs.assign(SECOND)
    assert logs.read_from(0) == 0 and logs.has_reached(FIRST, 4) and not logs.has_reached(SECOND, 1)
    assert logs.apply(0, list(enumerate(topic))[:2], begin=0, end=2) == []
    assert logs.read_from(0) == 2 and names(logs[SECOND].segments()) == ["a"]
    assert read(logs, 0, topic, begin=2) == [], "what the first log has is no error when it comes again"
    assert logs[SECOND].finished_bytes == logs[FIRST].finished_bytes == 100


def test_a_snapshot_spares_what_was_read() -> None:
    logs = RemoteLogs(1)
    topic = [encode(of(FIRST, event)) for event in COPY]
    logs.assign(FIRST)
    read(logs, 0, topic)
    kept = decode_log(encode_log(logs.snapshot(FIRST)))
    again = RemoteLogs(1)
    again.assign(FIRST, kept)
    assert again.read_from(0) == 2 and content(again[FIRST]) == content(logs[FIRST])
    # The snapshot of a partition of an earlier topic of the name is none of this one.
    other = RemoteLogs(1)
    other.assign(OTHER_TOPIC, kept)
    assert other.read_from(0) == 0 and not len(other[OTHER_TOPIC])


def test_what_is_refused_is_told_and_passed_over() -> None:
    logs = RemoteLogs(1)
    logs.assign(FIRST)
    topic = [encode(of(FIRST, update("a", DELETING))), b"nonsense", b"", *(encode(of(FIRST, event)) for event in COPY)]
    refused = read(logs, 0, topic)
    assert [record.offset for record in refused] == [0, 1, 2]
    assert "no remote segment" in refused[0].problem and "frame version 110" in refused[1].problem
    assert logs[FIRST].finished_bytes == 100 and logs.read_from(0) == len(topic)


def test_records_without_a_beginning_are_a_mistake_of_the_reader() -> None:
    logs = RemoteLogs(1)
    logs.assign(FIRST)
    with pytest.raises(AssertionError, match="are missing"):
        logs.apply(0, [], begin=1, end=2)


class Brokers(RuleBasedStateMachine):
    """The model: a log that gets all records of its partition as they are written."""

    def __init__(self) -> None:
        super().__init__()
        self.topic: list[list[bytes]] = [[] for _ in range(COUNT)]
        self.whole = {partition: RemoteLog(partition) for partition in PARTITIONS}
        self.logs = RemoteLogs(COUNT)
        self.assigned: set[TopicIdPartition] = set()
        self.disk: dict[TopicIdPartition, bytes] = {}
        self.rng = random.Random(1)

    @rule(partition=st.sampled_from(PARTITIONS), name=st.sampled_from("abc"), at=st.integers(0, 20), new=st.booleans())
    def write(self, partition: TopicIdPartition, name: str, at: int, new: bool) -> None:
        state = self.rng.choice((FINISHED, DELETING))
        event = of(partition, segment(name, at, at + 5) if new else update(name, state))
        self.topic[metadata_partition(partition, COUNT)].append(encode(event))
        try:
            self.whole[partition].apply(event)
        except RemoteMetadataError:
            return

    @rule(partition=st.sampled_from(PARTITIONS), with_snapshot=st.booleans())
    def assign(self, partition: TopicIdPartition, with_snapshot: bool) -> None:
        kept = self.disk.get(partition) if with_snapshot else None
        self.logs.assign(partition, decode_log(kept) if kept else None)
        self.assigned.add(partition)

    @rule(partition=st.sampled_from(PARTITIONS))
    def unassign(self, partition: TopicIdPartition) -> None:
        if partition in self.assigned:
            self.disk[partition] = encode_log(self.logs.snapshot(partition))
        self.logs.unassign(partition)
        self.assigned.discard(partition)

    @rule(number=st.integers(0, COUNT - 1), length=st.integers(0, 8), back=st.integers(0, 3))
    def read(self, number: int, length: int, back: int) -> None:
        start = self.logs.read_from(number)
        if start is not None:
            begin = max(0, start - back)
            records = list(enumerate(self.topic[number]))[begin : begin + length]
            self.logs.apply(number, records, begin=begin, end=begin + len(records))

    @invariant()
    def logs_that_have_all_are_the_same(self) -> None:
        assert self.logs.metadata_partitions() == sorted({metadata_partition(each, COUNT) for each in self.assigned})
        for partition in self.assigned:
            number = metadata_partition(partition, COUNT)
            start = self.logs.read_from(number)
            assert start is not None and start <= len(self.topic[number])
            if self.logs.has_reached(partition, len(self.topic[number])):
                assert content(self.logs[partition]) == content(self.whole[partition])


Brokers.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestBrokers = Brokers.TestCase


def test_the_partitions_of_the_model_are_spread() -> None:
    assert len({metadata_partition(partition, COUNT) for partition in PARTITIONS}) == COUNT


def test_a_snapshot_names_where_it_goes_on() -> None:
    logs = RemoteLogs(1)
    logs.assign(FIRST, RemoteLogSnapshot(RemoteLog(FIRST), 17))
    assert logs.snapshot(FIRST).next_offset == 17 and logs.read_from(0) == 17
