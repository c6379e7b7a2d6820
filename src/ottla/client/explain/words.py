"""Numbers and names in sentences."""

from collections.abc import Iterable, Sequence

from ottla.model.ids import TopicPartition

_NAMED_MAX = 5
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def plural(count: int, noun: str) -> str:
    """Return `1 record`, `1,234 records`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def some(names: Iterable[object]) -> str:
    """Return the names with commas; of many only the first ones, and how many more there are."""
    listed = [str(each) for each in names]
    shown = ", ".join(listed[:_NAMED_MAX])
    return shown if len(listed) <= _NAMED_MAX else f"{shown} and {len(listed) - _NAMED_MAX} more"


def places(partitions: Sequence[TopicPartition]) -> str:
    return some(f"{each.topic}-{each.partition}" for each in partitions)


def span(seconds: float) -> str:
    """Return `0.3 s`, `12 s`, `5 min 10 s`, `2 d 3 h`."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    left = round(seconds)
    words: list[str] = []
    for size, unit in (*_UNITS, (1, "s")):
        count, left = divmod(left, size)
        if count and len(words) < 2:
            words.append(f"{count} {unit}")
    return " ".join(words)


def rate(per_s: float) -> str:
    return f"{per_s:,.0f} records/s" if per_s >= 10 or per_s == 0 else f"{per_s:.1f} records/s"
