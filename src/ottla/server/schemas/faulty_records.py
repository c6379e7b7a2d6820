"""Batches with records that break a contract: refused, or written with these records tagged or left out."""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice

from ottla.model.errors import ApiError, ErrorCode, RecordError
from ottla.model.limits import RECORD_FAULTS_TOLD_MAX
from ottla.records.batch import BatchHeader
from ottla.records.build import assemble_like, put_record
from ottla.records.compress import compressing
from ottla.records.record import decode, rows

TAG = "ottla.schema.error"


def refusal(header: BatchHeader, topic: str, faults: dict[int, str]) -> ApiError:
    """Return the error for a whole batch, with a reason for each faulty record."""
    first = next(iter(faults.values()))
    return ApiError(
        ErrorCode.INVALID_RECORD,
        f"{len(faults)} of {header.count} records break the contract of {topic}; the first: {first}",
        tuple(RecordError(at, fault) for at, fault in islice(faults.items(), RECORD_FAULTS_TOLD_MAX)),
    )


def too_many_letters(header: BatchHeader, topic: str, faults: int, most_bytes: int) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"{faults} of {header.count} records break the contract of {topic}; their dead letters would have more than "
        f"{most_bytes} bytes. Send smaller batches.",
    )


def rebuilt(data: bytes, header: BatchHeader, faults: dict[int, str], *, tag: bool) -> Generator[None, None, bytearray]:
    """Rebuild the batch, in steps, with its faulty records tagged or left out, in the same range of offsets and
    sequence numbers.
    """
    out = bytearray()
    at = count = 0
    for portion in decode(data, header):
        for offset, timestamp, key, value, headers in rows(portion):
            fault = faults.get(at)
            at += 1
            if fault is not None and not tag:
                continue
            if fault is not None:
                headers = (*headers, (TAG, fault.encode()))
            put_record(out, offset - header.base_offset, timestamp - header.base_timestamp, key, value, headers)
            count += 1
        yield
    packed = bytearray()
    for piece in compressing(header.codec, out):
        packed += piece
        yield
    return assemble_like(header._replace(count=count), packed)
