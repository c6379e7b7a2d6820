"""ClientSeries: what one client instance has pushed so far, as series that Prometheus can read.

Names are derived: `org.apache.kafka.producer.record.send.total` becomes `ottla_client_producer_record_send_total`.
Everything that is no letter or digit becomes an underscore. The name of a counter ends with `_total`, and that of
nothing else does, so that a name has one type whoever pushes it. The labels of a series are those that the client
pushed, behind who it is.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ottla.model import limits
from ottla.telemetry.otlp import Labels, MetricPoint

PREFIX = "ottla_client_"
CLIENT_ID, INSTANCE_ID = "client_id", "client_instance_id"

_KAFKA = "org.apache.kafka."
_TOTAL = "_total"
_OTHER = re.compile(r"[^a-zA-Z0-9]+")
# What labels of a client cannot be called: Prometheus' own names, and those that say who the client is.
_TAKEN = frozenset({CLIENT_ID, INSTANCE_ID, "instance", "job", "le", "quantile"})


class ClientSeries:
    """`values` has the value of each series, by name and labels."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, Labels], float] = {}
        self._chars = 0  # of their names and labels

    def take(self, points: list[MetricPoint]) -> int:
        """Take over what was pushed; return the number of values for which there is no room."""
        left_out = 0
        for name, labels, value, grows, is_delta in points:
            key = series_name(name, grows), labels
            before = self.values.get(key)
            if before is None and not self._has_room(*key):
                left_out += 1
            else:
                self.values[key] = before + value if is_delta and before is not None else value
        return left_out

    def _has_room(self, name: str, labels: Labels) -> bool:
        """Return whether there is room for a new series, which then counts."""
        chars = self._chars + len(name) + sum(len(label) + len(value) for label, value in labels)
        if len(self.values) >= limits.TELEMETRY_SERIES_MAX or chars > limits.TELEMETRY_SERIES_CHARS_MAX:
            return False
        self._chars = chars
        return True


@lru_cache(limits.TELEMETRY_NAMES_MAX)
def series_name(name: str, grows: bool) -> str:
    """Return the name for Prometheus of a metric that a client pushes; `grows`: it is a counter."""
    found = PREFIX + _OTHER.sub("_", name.removeprefix(_KAFKA)).strip("_").lower()
    if grows:
        return found if is_counter(found) else found + _TOTAL
    return f"{found}_now" if is_counter(found) else found


def is_counter(name: str) -> bool:
    """Return whether a series of this name is a counter."""
    return name.endswith(_TOTAL)


@lru_cache(limits.TELEMETRY_NAMES_MAX)
def label_names(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names for Prometheus of the labels of a series; no two are the same."""
    found: dict[str, None] = {}
    for label in labels:
        name = _OTHER.sub("_", label).strip("_").lower()
        if not name or name[0].isdigit() or name in _TAKEN:
            name = f"label_{name}"
        while name in found:
            name += "_"
        found[name] = None
    return tuple(found)
