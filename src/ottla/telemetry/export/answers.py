"""What a collector answers to a push: how much of it was not accepted, and why."""

from __future__ import annotations

from typing import NamedTuple

from ottla.telemetry.protobuf import SIZED, VARINT, PayloadError, PayloadReader

# The ids of the fields, by message, as in opentelemetry.proto.collector.
_PARTIAL_SUCCESS = 1  # ExportMetricsServiceResponse, ExportTraceServiceResponse
_REJECTED, _REASON = 1, 2  # ExportMetricsPartialSuccess, ExportTracePartialSuccess
_STATUS_MESSAGE = 2  # google.rpc.Status, the body of an error


class Rejected(NamedTuple):
    """The number of points or spans that were not accepted, and the reason."""

    number: int
    reason: str


def rejected_in(answer: bytes) -> Rejected:
    """Return what the body of a successful answer tells. Nothing is known of one that cannot be read."""
    reader = PayloadReader(answer)
    number, reason = 0, ""
    try:
        for partial in reader.fields(0, len(answer)):
            if partial.id == _PARTIAL_SUCCESS and partial.kind == SIZED:
                for field in reader.fields(partial.at, partial.end):
                    if field.id == _REJECTED and field.kind == VARINT:
                        number = field.number
                    elif field.id == _REASON and field.kind == SIZED:
                        reason = reader.text(field)
    except PayloadError:
        return Rejected(0, "")
    return Rejected(number, reason)


def reason_in(answer: bytes) -> str:
    """Return why a push failed, by the body of the answer; empty if it does not say."""
    reader = PayloadReader(answer)
    try:
        found = [
            reader.text(field)
            for field in reader.fields(0, len(answer))
            if field.id == _STATUS_MESSAGE and field.kind == SIZED
        ]
    except PayloadError:
        return ""
    return found[-1] if found else ""
