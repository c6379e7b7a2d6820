"""A remote log as bytes, and what is refused. `test_model.py` does it between any two records."""

from __future__ import annotations

import pytest
from tests.tier.metadata.making import (
    DELETING,
    FINISHED,
    PARTITION,
    copied,
    deletion,
    remote_log,
    segment,
    update,
    uuid,
)

from ottla.records.crc import crc32c
from ottla.tier.metadata.remote_log import RemoteLog
from ottla.tier.metadata.snapshot import RemoteLogSnapshot, decode_log, encode_log
from ottla.tier.metadata.states import PartitionDeleteState, RemoteMetadataError


def content(remote: RemoteLog) -> object:
    """All that a remote log knows."""
    epochs = {
        epoch: (known.highest_offset, list(known.referenced), sorted(known.unreferenced), known._starts, known._ends)
        for epoch, known in remote.epochs.items()
    }
    by_uuid = {segment.uuid: segment for segment in remote.segments()}
    return remote.partition, remote.deletion, remote.finished_bytes, epochs, by_uuid


def full() -> RemoteLog:
    remote = remote_log(
        copied("a", 0, 99, (4, 0), (5, 50)),
        copied("b", 100, 199, (5, 100)),
        copied("c", 50, 250, (5, 50)),
        segment("d", 251, 300, (5, 251), (6, 270)),
    )
    remote.apply(update("c", DELETING))  # what it replaced is not read again
    remote.apply(deletion(PartitionDeleteState.DELETE_PARTITION_MARKED))
    return remote


# Epoch 0 has no records: its highest offset is the one before the log, as in Kafka.
WITHOUT_RECORDS = remote_log(copied("a", 0, 9, (0, 0), (1, 0)))


@pytest.mark.parametrize(
    "remote", [RemoteLog(PARTITION), full(), WITHOUT_RECORDS], ids=["empty", "full", "an epoch without records"]
)
def test_there_and_back(remote: RemoteLog) -> None:
    data = encode_log(RemoteLogSnapshot(remote, 4711))
    found = decode_log(data)
    assert found.next_offset == 4711
    assert content(found.remote) == content(remote)
    assert encode_log(found) == data


def test_what_was_replaced_stays_so() -> None:
    """The copy that replaced `b` is deleted; an earlier broker has chosen `b` for deletion, too."""
    remote = full()
    again = decode_log(encode_log(RemoteLogSnapshot(remote, 0))).remote
    assert remote[uuid("b")].state is FINISHED
    for known in (remote, again):
        assert known.segment_at(next(iter(known.epochs)), 10) is not None
        assert [segment.end_offset for segment in known.replaced()] == [199]


DATA = encode_log(RemoteLogSnapshot(full(), 4711))


@pytest.mark.parametrize("at", range(0, len(DATA), 7))
def test_damage_is_found(at: int) -> None:
    with pytest.raises(RemoteMetadataError):
        decode_log(DATA[:at])
    with pytest.raises(RemoteMetadataError):
        decode_log(DATA[:at] + bytes([DATA[at] ^ 0x40]) + DATA[at + 1 :])


@pytest.mark.parametrize(("cut", "more"), [(1, b""), (9, b""), (40, b""), (0, b"\0"), (0, b"\1\2\3")])
def test_a_snapshot_that_its_checksum_fits_is_still_read_with_care(cut: int, more: bytes) -> None:
    body = DATA[6 : len(DATA) - cut] + more
    with pytest.raises(RemoteMetadataError):
        decode_log(DATA[:2] + crc32c(body).to_bytes(4, "big") + body)


def test_another_version_is_refused() -> None:
    with pytest.raises(RemoteMetadataError, match="version 2"):
        decode_log(b"\0\2" + DATA[2:])
