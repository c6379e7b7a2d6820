"""Records of internal topics as messages."""

import pytest

from ottla.log.offline.decode import decode_control, decode_record
from ottla.records.control import ControlType, control_key
from ottla.records.record import Record
from ottla.wire.compile import encode
from ottla.wire.journal import cluster_metadata, consumer_offsets, control
from ottla.wire.message import Data


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(0, 0, key, value)


def test_committed_offsets() -> None:
    key = consumer_offsets.OffsetCommitKey(group="g", topic="t", partition=3)
    value = consumer_offsets.OffsetCommitValue(offset=17, metadata="m", commit_timestamp=5)
    data = record(b"\x00\x01" + encode(key, 0), b"\x00\x03" + encode(value, 3))
    found = decode_record("__consumer_offsets", data)
    assert found is not None
    assert found.key == key
    assert found.value == value
    assert decode_record("__consumer_offsets", data._replace(value=None)) == (key, None)


@pytest.mark.parametrize("key", [None, b"", b"\x00\x63abc", b"\x00\x01\x00\x09"])
def test_what_is_not_known_is_none(key: bytes | None) -> None:
    assert decode_record("__consumer_offsets", record(key, b"\x00\x00")) == (None, None)


def test_metadata() -> None:
    topic = cluster_metadata.TopicRecord(name="t", topic_id=bytes(range(16)))
    value = bytes((1, cluster_metadata.TopicRecord.key, 0)) + encode(topic, 0)
    assert decode_record("__cluster_metadata", record(None, value)) == (None, topic)
    for bad in (None, b"", b"\x02\x02\x00abc", b"\x01\x7f\x00", value[:-1], value + b"?"):
        assert decode_record("__cluster_metadata", record(None, bad)) == (None, None)


def test_other_topics_have_no_schema() -> None:
    assert decode_record("orders", record(b"k", b"v")) is None


def test_control_records() -> None:
    messages: dict[ControlType, Data] = {
        ControlType.LEADER_CHANGE: control.LeaderChangeMessage(version=0, leader_id=1, voters=[], granting_voters=[]),
        ControlType.SNAPSHOT_FOOTER: control.SnapshotFooterRecord(version=0),
    }
    for kind, message in messages.items():
        assert decode_control(record(control_key(kind), encode(message, 0))) == (kind, message)
    marker = control.EndTxnMarker(coordinator_epoch=3)
    found = decode_control(record(control_key(ControlType.COMMIT), b"\x00\x00" + encode(marker, 0)))
    assert found == (ControlType.COMMIT, marker)
    assert decode_control(record(control_key(ControlType.UNKNOWN), b"")) == (ControlType.UNKNOWN, None)
    assert decode_control(record(b"?", b"")) == (ControlType.UNKNOWN, None)
    assert decode_control(record(control_key(ControlType.LEADER_CHANGE), None)) == (ControlType.LEADER_CHANGE, None)
