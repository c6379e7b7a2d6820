"""Durations in human notation."""

from __future__ import annotations

import re

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def parse_duration_ms(text: str) -> int:
    """Read `10m`, `2h30m`, `45s`, `1d`, `500ms`; a plain number counts seconds. Raises ValueError."""
    if re.fullmatch(r"\d+", text):
        return int(text) * 1_000
    if not re.fullmatch(r"(\d+(ms|[smhdw]))+", text):
        raise ValueError(f"{text!r} is not a duration like 10m, 2h30m or 500ms")
    return sum(int(number) * _UNITS_MS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhdw])", text))
