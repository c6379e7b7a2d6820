"""The bytes of the metadata journal: batches of entries, control records, and snapshot files, all in Kafka's framing.

Rules:
- A group of entries that must take effect together is one batch; if it is too large for one, it is a transaction of
  several (KIP-868). Either way the caller writes the returned bytes with one append.
- A snapshot is a journal of its own: header control batch, batches of entries, footer control batch. Without its
  footer it is the leftover of a crash and must not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ottla.cluster.entry import MetadataEntry, decode, encode
from ottla.cluster.state import JournalError
from ottla.model.errors import ApiError
from ottla.model.ids import LeaderEpoch
from ottla.model.limits import METADATA_RECORDS_PER_SLICE, RECORDS_PER_METADATA_BATCH_MAX
from ottla.records.batch import check, headers
from ottla.records.build import values_batch
from ottla.records.control import ControlType, control_batch, control_type
from ottla.records.record import records
from ottla.wire import compile
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.journal import control

# Kafka's controllers write and replicate batches of up to 8 MiB; a follower must be able to fetch any batch.
BATCH_BYTES_MAX = 8 * 1024 * 1024
# The most bytes that framing adds to an entry: length, attributes, deltas, null key, value length, no headers.
_RECORD_OVERHEAD_BYTES = 24

_SNAPSHOT_VERSION = 0
_SNAPSHOT_ENDS = (ControlType.SNAPSHOT_HEADER, ControlType.SNAPSHOT_FOOTER)


class Control(NamedTuple):
    """A control record of the quorum, such as the voters or kraft.version."""

    type: ControlType
    value: bytes


class Item(NamedTuple):
    """One record of a journal or a snapshot."""

    offset: int
    epoch: LeaderEpoch
    timestamp: int
    content: MetadataEntry | Control


def entry_batches(
    entries: Iterable[MetadataEntry],
    *,
    base_offset: int,
    epoch: LeaderEpoch,
    now_ms: int,
    records_max: int | None = None,
) -> Iterator[tuple[bytearray, int]]:
    """Yield batches of the entries, each with the number of records in it."""
    records_max = records_max or RECORDS_PER_METADATA_BATCH_MAX
    pending: list[bytes] = []
    size_bytes = 0
    for entry in entries:
        value = encode(entry)
        full = len(pending) == records_max
        if full or (pending and size_bytes + len(value) + _RECORD_OVERHEAD_BYTES > BATCH_BYTES_MAX):
            yield _batch(pending, base_offset, epoch, now_ms), len(pending)
            base_offset += len(pending)
            pending, size_bytes = [], 0
        pending.append(value)
        size_bytes += len(value) + _RECORD_OVERHEAD_BYTES
    if pending:
        yield _batch(pending, base_offset, epoch, now_ms), len(pending)


def _batch(values: Sequence[bytes], base_offset: int, epoch: LeaderEpoch, now_ms: int) -> bytearray:
    return values_batch(values, base_offset=base_offset, leader_epoch=epoch, timestamp=now_ms)


def atomic(entries: Sequence[MetadataEntry], *, base_offset: int, epoch: LeaderEpoch, now_ms: int) -> list[bytearray]:
    """Return the batches of entries that take effect together."""
    batches = [batch for batch, _ in entry_batches(entries, base_offset=base_offset, epoch=epoch, now_ms=now_ms)]
    if len(batches) <= 1:
        return batches
    framed = [
        MetadataEntry(journal.BeginTransactionRecord(name=f"{len(entries)} records")),
        *entries,
        MetadataEntry(journal.EndTransactionRecord()),
    ]
    return [batch for batch, _ in entry_batches(framed, base_offset=base_offset, epoch=epoch, now_ms=now_ms)]


def snapshot_batches(
    entries: Iterable[MetadataEntry],
    *,
    epoch: LeaderEpoch,
    last_timestamp: int,
    now_ms: int,
    quorum: Sequence[Control] = (),
) -> Iterator[bytearray]:
    """Yield a whole snapshot piece by piece, each as large as one slice may write. `quorum` are the control records
    (voters, kraft.version) to include.
    """
    header = control.SnapshotHeaderRecord(version=_SNAPSHOT_VERSION, last_contained_log_timestamp=last_timestamp)
    first = [(ControlType.SNAPSHOT_HEADER, compile.encode(header, 0)), *((item.type, item.value) for item in quorum)]
    yield control_batch(first, timestamp=now_ms, base_offset=0, leader_epoch=epoch)
    offset = len(first)
    batches = entry_batches(
        entries, base_offset=offset, epoch=epoch, now_ms=now_ms, records_max=METADATA_RECORDS_PER_SLICE
    )
    for batch, count in batches:
        yield batch
        offset += count
    footer = compile.encode(control.SnapshotFooterRecord(version=_SNAPSHOT_VERSION), 0)
    yield control_batch(
        [(ControlType.SNAPSHOT_FOOTER, footer)], timestamp=now_ms, base_offset=offset, leader_epoch=epoch
    )


def items(view: memoryview) -> Iterator[Item]:
    """Yield every record of the complete batches in `view`; check each batch."""
    for position, header in headers(view):
        check(view, position, header)
        for record in records(view, position):
            content: MetadataEntry | Control
            if header.is_control:
                content = Control(control_type(record.key), record.value or b"")
            elif record.value is None:
                raise JournalError(f"the metadata record at offset {record.offset} has no value")
            else:
                content = decode(record.value)
            yield Item(record.offset, header.leader_epoch, record.timestamp, content)


def check_snapshot(data: bytes, name: str) -> list[Control]:
    """Return the control records between the header and the footer of a snapshot file; JournalError if the file is
    incomplete or damaged.
    """
    view = memoryview(data)
    controls: list[Control] = []
    end = 0
    ends_with_control = False
    try:
        for position, header in headers(view):
            check(view, position, header)
            end = position + header.size_bytes
            ends_with_control = header.is_control
            if header.is_control:
                controls += [Control(control_type(each.key), each.value or b"") for each in records(view, position)]
    except ApiError as error:
        raise JournalError(f"the snapshot {name} is damaged: {error}") from error
    kinds = [control.type for control in controls]
    whole = kinds[:1] == [ControlType.SNAPSHOT_HEADER] and kinds[-1:] == [ControlType.SNAPSHOT_FOOTER]
    if not whole or not ends_with_control or end != len(data):
        raise JournalError(f"the snapshot {name} is incomplete")
    return controls[1:-1]


def snapshot_items(data: bytes, name: str) -> Iterator[Item]:
    """Yield the items between the header and the footer of a snapshot file one by one: there may be millions."""
    check_snapshot(data, name)
    for item in items(memoryview(data)):
        if not (isinstance(item.content, Control) and item.content.type in _SNAPSHOT_ENDS):
            yield item
