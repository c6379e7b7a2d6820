"""Sizes, rates, times and numbers as people read and write them."""

import re

from ottla.model.limits import INT32_MAX, INT64_MAX
from ottla.operations.errors import WrongUsage

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_PER_SECOND = re.compile(r"/s\Z", re.IGNORECASE)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DURATIONS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))


def size_text(size_bytes: int) -> str:
    """A size as `1.5 MiB`."""
    if size_bytes < 0:
        return "?"
    value = float(size_bytes)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            return f"{int(value)} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def time_text(timestamp_ms: int) -> str:
    """Local time with milliseconds; `-` if there is no timestamp."""
    from datetime import datetime

    if timestamp_ms < 0:
        return "-"
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000).isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"


def parse_time_ms(text: str) -> int:
    """Read milliseconds since 1970, or an ISO date or time (local time unless it names a zone). Raises ValueError.

    Times before 1970 are refused, because negative times in Kafka's requests stand for the first and the last offset.
    """
    from datetime import datetime

    try:
        digits = text.removeprefix("-")
        time_ms = int(text) if digits.isdecimal() else round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is neither milliseconds since 1970 nor a time like 2026-01-31T12:00:00") from None
    if not 0 <= time_ms <= INT64_MAX:
        wrong = "is before 1970" if time_ms < 0 else f"is later than {INT64_MAX} ms, the last time there is"
        raise ValueError(f"{text} {wrong}")
    return time_ms


def parse_rate(text: str) -> int:
    """Read `50MiB`, `1.5 GB`, `1000`: bytes per second."""
    size = _bytes_of(_PER_SECOND.sub("", text.strip()))
    if size is None:
        raise WrongUsage(f"{text!r} is no rate", "50MiB means 50 MiB per second")
    return _above_zero(text, size)


def parse_size(text: str) -> int:
    """Read `50GiB`, `1.5 TB`, `1000`: bytes."""
    size = _bytes_of(text.strip())
    if size is None:
        raise WrongUsage(f"{text!r} is no size", "50GB means 50 000 000 000 bytes, 50GiB is 7 % more")
    return _above_zero(text, size)


def _bytes_of(text: str) -> float | None:
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    step = 1024 if match[3] else 1000
    unit: int = step ** " kmgt".index(match[2].lower() or " ")
    return float(match[1]) * unit


def _above_zero(text: str, size: float) -> int:
    if size < 1:
        raise WrongUsage(f"{text!r}: it has to be above 0", "1 is one byte; without a limit, do not give one")
    if size > INT64_MAX:
        raise WrongUsage(f"{text!r} is more than Kafka can express", "without a limit, do not give one")
    return round(size)


def parse_index(text: str) -> int | None:
    """Parse the number of a partition; None if the text is none."""
    return _number(text, INT32_MAX)


def parse_offset(text: str) -> int | None:
    """Parse an offset; None if the text is none."""
    return _number(text, INT64_MAX)


def _number(text: str, most: int) -> int | None:
    is_short = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    return int(text) if is_short and int(text) <= most else None


def duration_text(duration_ms: int) -> str:
    """A duration by its two largest units, such as `7 d` or `1 h 30 min`."""
    parts = []
    for unit_ms, unit in _DURATIONS:
        count, duration_ms = divmod(duration_ms, unit_ms)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 ms"
