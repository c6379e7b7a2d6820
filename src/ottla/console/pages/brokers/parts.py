"""What the pages of brokers share: their tabs, amounts, and the state of a broker."""

from __future__ import annotations

from ottla.console.html import Content, Markup, tag
from ottla.console.parts.words import badge, tabs
from ottla.operations.formats import size_text

BROKERS = ("Brokers", "/brokers")
QUORUM = ("Quorum", "/brokers/quorum")
MOVES = ("Moves", "/brokers/moves")
# Where one partition is moved.
BY_HAND = "/brokers/moves/new"
_TABS = (
    BROKERS,
    QUORUM,
    MOVES,
    ("Balance", "/brokers/balance"),
    ("Features", "/brokers/features"),
)
_FULL = 0.9
_NEARLY_FULL = 0.75


def broker_tabs(here: str) -> Markup:
    return tabs(_TABS, here)


def state_of(*, is_fenced: bool) -> Markup:
    return badge("down", "bad") if is_fenced else badge("up", "good")


def size_or_unknown(size_bytes: int | None) -> str:
    return "?" if size_bytes is None else size_text(size_bytes)


def disk_use(total_bytes: int | None, free_bytes: int | None) -> Content:
    """How full a disk is, as a bar with a text."""
    if not total_bytes or free_bytes is None:
        return "?"
    used = 1 - free_bytes / total_bytes
    mood = "bad" if used > _FULL else "fair" if used > _NEARLY_FULL else "good"
    said = f"{100 * used:.0f} % of {size_text(total_bytes)}, {size_text(free_bytes)} free"
    return [bar(used, mood), tag("small", said)]


def bar(part: float, mood: str = "good") -> Markup:
    """A bar that is filled to a part of its length."""
    filled = tag("rect", x=0, y=0, width=f"{100 * min(max(part, 0), 1):.1f}", height=10, class_=mood)
    return tag("svg", filled, viewBox="0 0 100 10", preserveAspectRatio="none", class_="meter", aria_hidden="true")
