"""Times and amounts as pages show them."""

from __future__ import annotations

from datetime import datetime

from ottla.operations.formats import size_text


def clock(time_ms: int) -> str:
    """The time of the day, in the time zone of the console."""
    return datetime.fromtimestamp(time_ms / 1000).strftime("%H:%M:%S")


def ago(seconds: float) -> str:
    """How long ago something was, or how long something took."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def seconds_text(seconds: float) -> str:
    """A duration of a chart."""
    return f"{seconds:.1f} s" if seconds < 10 else ago(seconds)


def bytes_per_s(value: float) -> str:
    """As `size_text`, and short enough for the scale of a chart."""
    number, unit = size_text(round(value)).split()
    return f"{float(number):.0f} {unit}/s" if float(number) >= 100 else f"{number} {unit}/s"


def per_s(value: float) -> str:
    return f"{count_text(value)}/s"


def count_text(value: float) -> str:
    """A number with few digits; thousands are counted from 10,000 on."""
    for unit, size, least in (("G", 1e9, 1e9), ("M", 1e6, 1e6), ("k", 1e3, 1e4)):
        if value >= least:
            return f"{value / size:.1f}{unit}"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def ms_text(value: float) -> str:
    return f"{value:.1f} ms" if value < 10 else f"{value:,.0f} ms"
