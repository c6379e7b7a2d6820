"""Beside Kafka's own classes: records, partitions of the metadata topic, the cache, the rule for lineages."""

from __future__ import annotations

import random
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.java.programs import JavaServer
from tests.tier.metadata.making import (
    ANY_EVENT,
    DELETED,
    DELETING,
    FINISHED,
    any_segment,
    copied,
    deletion,
    epochs,
    history,
    lineage,
    segment,
    update,
)

from ottla.model.ids import LeaderEpoch, uuid_bytes, uuid_text
from ottla.tier.metadata.metadata_topic import metadata_partition
from ottla.tier.metadata.records import decode, decode_snapshot, encode, encode_snapshot
from ottla.tier.metadata.remote_log import RemoteLog
from ottla.tier.metadata.segment import (
    PartitionDeletion,
    RemoteLogEvent,
    RemoteSegmentMetadata,
    SegmentUpdate,
    TopicIdPartition,
)
from ottla.tier.metadata.states import (
    InvalidTransition,
    PartitionDeleteState,
    RemoteMetadataError,
    SegmentState,
    check_deletion,
    check_segment,
)

pytestmark = pytest.mark.compat

EPOCHS, OFFSETS = range(4), range(0, 60)


@pytest.fixture(scope="module")
def kafka(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaServer]:
    server = JavaServer("ottla.TierServer", tmp_path_factory.mktemp("java") / "stderr.log")
    try:
        yield server
    finally:
        server.close()


def coded(values: Sequence[bytes]) -> list[str]:
    return [b64encode(value).decode() for value in values]


def shown(event: RemoteLogEvent, kind: str = "segment") -> dict[str, Any]:
    """An event as the harness tells it."""
    topic, topic_id, partition = event.partition
    told: dict[str, Any] = {
        "broker_id": event.broker_id,
        "event_timestamp_ms": event.event_timestamp_ms,
        "state": event.state.name,
        "topic": topic,
        "topic_id": uuid_text(topic_id),
        "partition": partition,
    }
    if isinstance(event, PartitionDeletion):
        return {**told, "kind": "deletion"}
    told["uuid"] = uuid_text(event.uuid)
    told["custom_metadata"] = None if event.custom_metadata is None else list(event.custom_metadata)
    if isinstance(event, SegmentUpdate):
        return {**told, "kind": "update"}
    if kind == "snapshot":
        told = {name: value for name, value in told.items() if name not in {"topic", "topic_id", "partition"}}
    return {
        **told,
        "kind": kind,
        "start_offset": event.start_offset,
        "end_offset": event.end_offset,
        "max_timestamp_ms": event.max_timestamp_ms,
        "size_bytes": event.size_bytes,
        "txn_index_empty": event.txn_index_empty,
        "leader_epochs": [list(pair) for pair in event.leader_epochs],
    }


@settings(max_examples=30)
@given(st.lists(ANY_EVENT, min_size=1, max_size=20))
def test_records(kafka: JavaServer, events: list[RemoteLogEvent]) -> None:
    """Kafka reads what we write, and writes the same bytes for it; we read what it writes of its own objects."""
    values = [encode(event) for event in events]
    for event, value, answer in zip(events, values, kafka.ask({"verb": "read", "values": coded(values)}), strict=True):
        assert answer["item"] == shown(event)
        assert b64decode(answer["value"]) == value
    theirs = kafka.ask({"verb": "write", "items": [shown(event) for event in events]})
    assert [decode(b64decode(value)) for value in theirs] == events


@settings(max_examples=30)
@given(st.lists(any_segment(), min_size=1, max_size=20))
def test_records_of_snapshots(kafka: JavaServer, segments: list[RemoteSegmentMetadata]) -> None:
    values = [encode_snapshot(each) for each in segments]
    answers = kafka.ask({"verb": "read", "values": coded(values)})
    for each, value, answer in zip(segments, values, answers, strict=True):
        assert answer["item"] == shown(each, "snapshot")
        assert b64decode(answer["value"]) == value
    items = [{**shown(each, "segment"), "kind": "snapshot"} for each in segments]
    theirs = kafka.ask({"verb": "write", "items": items})
    assert [
        decode_snapshot(b64decode(told), each.partition) for told, each in zip(theirs, segments, strict=True)
    ] == segments


def test_what_is_no_record_is_refused_by_both(kafka: JavaServer) -> None:
    rng = random.Random(11)
    whole = [encode(each) for each in (segment("a", 0, 9), update("a", FINISHED), deletion(PartitionDeleteState(0)))]
    bad = [value[:-1] for value in whole] + [value + b"\0" for value in whole] + [b"", b"\1", b"\1\x07\0", b"\1\0\1"]
    bad += [b"\0" + value[1:] for value in whole]
    bad += [whole[0][:length] for length in rng.sample(range(len(whole[0])), 20)]
    answers = kafka.ask({"verb": "read", "values": coded(bad)})
    assert all("refused" in answer for answer in answers)
    for value in bad:
        with pytest.raises(RemoteMetadataError):
            decode(value)


def test_transitions(kafka: JavaServer) -> None:
    ours = []
    for states, check in ((SegmentState, check_segment), (PartitionDeleteState, check_deletion)):
        for after in states:
            for before in (*states, None):
                try:
                    check(before, after)  # type: ignore[operator]
                except InvalidTransition:
                    continue
                ours.append(["null" if before is None else before.name, after.name])
    assert kafka.ask({"verb": "transitions"}) == ours


def test_partitions_of_the_metadata_topic(kafka: JavaServer) -> None:
    rng = random.Random(3)
    items = [(rng.randbytes(16), rng.choice((0, 1, 7, 2**31 - 1)), rng.choice((1, 3, 50, 1000))) for _ in range(500)]
    items += [(bytes(16), 0, 50), (b"\xff" * 16, 2**31 - 1, 50)]
    # Texts that begin with a dash are ids, too.
    asked = [[uuid_text(topic_id), partition, count] for topic_id, partition, count in items]
    assert all(uuid_bytes(text) == topic_id for (text, _, _), (topic_id, _, _) in zip(asked, items, strict=True))
    ours = [metadata_partition(TopicIdPartition("t", topic_id, at), count) for topic_id, at, count in items]
    assert kafka.ask({"verb": "partitions", "items": asked}) == ours


def answers(events: Sequence[RemoteLogEvent]) -> dict[str, Any]:
    """What our log of these records answers, in the harness's form. What it refuses changes nothing."""
    remote = RemoteLog(events[0].partition)
    for event in events:
        try:
            remote.apply(event)
        except RemoteMetadataError:
            continue

    def name(found: RemoteSegmentMetadata | None) -> str | None:
        return None if found is None else uuid_text(found.uuid)

    return {
        "all": {uuid_text(each.uuid): shown(each) for each in remote.segments()},
        "epochs": {
            str(epoch): {
                "highest": remote.highest_offset(epoch),
                "listed": [uuid_text(each.uuid) for each in remote.segments_of(epoch)],
                "at": [name(remote.segment_at(epoch, offset)) for offset in OFFSETS],
                "transactions": [name(remote.with_transactions(epoch, offset)) for offset in OFFSETS],
            }
            for epoch in map(LeaderEpoch, EPOCHS)
        },
    }


def of_kafka(kafka: JavaServer, events: Sequence[RemoteLogEvent]) -> dict[str, Any]:
    values = coded([encode(event) for event in events])
    told: dict[str, Any] = kafka.ask(
        {"verb": "cache", "values": values, "epochs": list(EPOCHS), "offsets": list(OFFSETS)}
    )
    return told


def same(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Segments with one start come in any order."""
    for told in (theirs, ours):
        for epoch in told["epochs"].values():
            starts = [told["all"][uuid]["start_offset"] for uuid in epoch["listed"]]
            assert starts == sorted(starts)
            epoch["listed"].sort()
    assert theirs == ours


def some_history(rng: random.Random) -> list[RemoteLogEvent]:
    """Leaders that come and go: each copies on where copies end, or again from further below and then at least as far;
    copies are given up, deleted from the beginning, told twice, and updated when nobody expects it.
    """
    events: list[RemoteLogEvent] = []
    starts = epochs(sorted({0: 0, 1: rng.randint(5, 20), 2: rng.randint(21, 30), 3: rng.randint(31, 40)}.items()))
    leader = lineage(*starts, end=60)
    end, oldest, number = 0, 0, 0
    alive: list[RemoteSegmentMetadata] = []
    while end < 55 and number < 25:
        number += 1
        again = rng.random() < 0.25
        start = rng.randint(oldest, end) if again else end
        last = min(59, (max(start, end - 1) if again else start) + rng.randint(0, 8))
        told = segment(str(number), start, last, *leader.within(start, last), txn_index_empty=rng.random() < 0.6)
        events.append(told)
        if rng.random() < 0.1:
            events.append(told)
        if rng.random() < 0.15:  # the copy failed
            events += [update(str(number), state) for state in (DELETING, DELETED)[: rng.randint(0, 2)]]
            continue
        events += [update(str(number), FINISHED)] * rng.choice((1, 1, 1, 2))
        alive.append(told)
        end = last + 1
        if rng.random() < 0.3:
            gone = min(alive, key=lambda each: each.start_offset)
            alive.remove(gone)
            name = gone.uuid.lstrip(b"\1").decode()
            events += [update(name, state) for state in (DELETING, DELETED)[: rng.randint(1, 2)]]
            oldest = max(oldest, gone.end_offset + 1)
        if rng.random() < 0.2:  # from a broker that does not know better
            events.append(update(str(rng.randint(1, 26)), rng.choice((DELETED, SegmentState.COPY_SEGMENT_STARTED))))
    return events


def test_the_same_answers_as_kafkas_cache(kafka: JavaServer) -> None:
    rng = random.Random(20)
    found, replaced = 0, 0
    for _ in range(150):
        events = some_history(rng)
        ours = answers(events)
        same(of_kafka(kafka, events), ours)
        for told in ours["epochs"].values():
            read = {name for name in told["at"] if name is not None}
            found += len(read)
            replaced += sum(ours["all"][name]["state"] == FINISHED.name and name not in read for name in told["listed"])
    assert found > 800 and replaced > 100, "the histories must have something to tell"


@pytest.mark.parametrize(
    ("before", "late", "lost"),
    [((0, 20), (0, 10), range(11, 21)), ((0, 20), (5, 10), range(11, 21))],
)
def test_a_smaller_copy_that_is_finished_late(
    kafka: JavaServer, before: tuple[int, int], late: tuple[int, int], lost: Sequence[int]
) -> None:
    """Where we are not the same: Kafka does not find offsets that the larger copy still has."""
    events = [*history(copied("a", *before)), *history(copied("b", *late))]
    ours, theirs = answers(events)["epochs"]["0"], of_kafka(kafka, events)["epochs"]["0"]
    assert all(ours["at"][offset] for offset in range(21))
    assert [offset for offset in range(21) if theirs["at"][offset] is None] == list(lost)
    assert sorted(ours["listed"]) == sorted(
        uuid_text(each.uuid) for each in (segment("a", *before), segment("b", *late))
    )


HISTORIES = st.dictionaries(st.integers(0, 9), st.integers(0, 40), min_size=1, max_size=5).map(
    lambda found: epochs(zip(sorted(found), sorted(found.values()), strict=True))
)
CASES = st.tuples(HISTORIES, HISTORIES, st.integers(0, 40), st.integers(0, 15), st.integers(0, 60), st.booleans())


@settings(max_examples=100)
@given(st.lists(CASES, min_size=1, max_size=50))
def test_the_rule_for_lineages(kafka: JavaServer, cases: list[Any]) -> None:
    asked, ours = [], []
    for known, other, start, length, end, is_own in cases:
        leader = lineage(*known, end=end)
        # Half of the segments are of the leader's own history, or would be if it were longer.
        own = leader.within(start, start + length) if is_own else ()
        found = segment("a", start, start + length, *(own or other))
        asked.append({"value": coded([encode(found)])[0], "log_end": end, "epochs": [list(pair) for pair in known]})
        ours.append(leader.has(found))
    assert kafka.ask({"verb": "within", "cases": asked}) == ours
