"""Delayed delivery: the time before which a record is not delivered, as its headers say.

`ottla.deliver-at` is a time (milliseconds since 1970), `ottla.delay-ms` a delay from the record's timestamp on; both
are decimal text or eight bytes, big endian, so that any client can write them. Other values mean no delay.
"""

from __future__ import annotations

from ottla.model.limits import INT64_MAX
from ottla.records.record import Record

DELIVER_AT = "ottla.deliver-at"
DELAY_MS = "ottla.delay-ms"
_INT64_BYTES = 8


def due_ms(record: Record) -> int:
    """Return when the record is due, 0 if there is no delay; the last of several headers counts."""
    due = 0
    for name, value in record.headers:
        if name == DELIVER_AT:
            due = _number(value)
        elif name == DELAY_MS:
            delay = _number(value)
            due = record.timestamp + delay if delay > 0 else 0
    return min(max(due, 0), INT64_MAX)


def _number(value: bytes | None) -> int:
    if not value:
        return 0
    if value.isdigit() and len(value) < 20:  # eight digits are text, too, not a binary number
        return int(value)
    return int.from_bytes(value, "big", signed=True) if len(value) == _INT64_BYTES else 0
