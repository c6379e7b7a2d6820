"""Checks of the acknowledgements in a request, before the share-partition's state is consulted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ottla.model.errors import ApiError, ErrorCode
from ottla.shares.partition.terms import Ack, AckType

_TYPES_MAX = max(AckType)


class AcknowledgementBatch(Protocol):
    """One batch of a ShareFetch or ShareAcknowledge request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


def acks_of(batches: Iterable[AcknowledgementBatch], *, renew: bool) -> list[Ack]:
    """Return the batches as Acks. Raises INVALID_REQUEST for malformed ones; `renew`: whether RENEW is allowed."""
    found: list[Ack] = []
    before = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last:
            raise _invalid("An acknowledgement batch ends before it begins.")
        if first < before:  # as in Kafka: a batch that begins where the one before ends is refused later
            raise _invalid("Acknowledgement batches must be in order and must not overlap.")
        if not types:
            raise _invalid("An acknowledgement batch has no type.")
        if len(types) > 1 and len(types) != last - first + 1:
            raise _invalid("An acknowledgement batch has neither one type nor one for each offset.")
        if not all(0 <= kind <= _TYPES_MAX for kind in types):
            raise _invalid("An acknowledgement batch has an unknown type.")
        if not renew and AckType.RENEW in types:
            raise _invalid("An acknowledgement batch renews, but the request does not say so.")
        found.append(Ack(first, last, types))
        before = last
    return found


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
