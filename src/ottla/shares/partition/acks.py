"""Checks that a member has acquired the offsets it acknowledges, and splits an Ack by type.

The errors, their order and their texts are Kafka's, so that users can search for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ottla.model.errors import ApiError, ErrorCode
from ottla.shares.partition.ranges import RecordRanges
from ottla.shares.partition.terms import Ack, AckType, RecordState

_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
_NOT_OWNED = "Member is not the owner of batch record"
_UNKNOWN = "Batch record not found. The request batch offsets are not found in the cache."
_BEYOND = "Batch record not found. The {} offset in request is past acquired records."


def check(acks: Sequence[Ack], member: str, ranges: RecordRanges, start_offset: int) -> None:
    """Raise unless the acks are in order and the member has acquired all their offsets; offsets below the start are
    ignored.
    """
    before = None
    for ack in acks:
        if before is not None and ack.first <= before:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, _NOT_ACQUIRED)
        if ack.last >= start_offset:
            _check_one(ack, member, ranges, start_offset)
        before = ack.last


def _check_one(ack: Ack, member: str, ranges: RecordRanges, start_offset: int) -> None:
    index = ranges.floor(ack.first)
    if index < 0 and ack.first < start_offset:
        index = ranges.floor(start_offset)
    if index < 0:
        raise ApiError(ErrorCode.INVALID_RECORD_STATE, _UNKNOWN)
    end = ranges.floor(ack.last)
    last = ranges.items[end].last
    if last < max(ack.first, start_offset):
        raise ApiError(ErrorCode.INVALID_REQUEST, _BEYOND.format("first"))
    if last < ack.last:
        raise ApiError(ErrorCode.INVALID_REQUEST, _BEYOND.format("last"))
    for item in ranges.items[index : end + 1]:
        if item.last < ack.first:
            continue
        if item.state is not RecordState.ACQUIRED:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, _NOT_ACQUIRED)
        if item.member != member:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, _NOT_OWNED)


def runs(ack: Ack, first: int) -> Iterable[tuple[AckType, int, int]]:
    """Yield the offsets from `first` on as runs of the same acknowledgement type."""
    if first > ack.last:
        return
    if len(ack.types) == 1:
        yield AckType(ack.types[0]), first, ack.last
        return
    for kind, group in groupby(range(first, ack.last + 1), key=lambda offset: ack.types[offset - ack.first]):
        offsets = list(group)
        yield AckType(kind), offsets[0], offsets[-1]
