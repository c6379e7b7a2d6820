"""The words that all pages about groups share: kinds, states, links, the frame of a group's pages."""

from __future__ import annotations

from typing import TypeVar

from ottla.client.admin.groups import GroupListing
from ottla.client.explain.lag import REBALANCING
from ottla.client.explain.words import span
from ottla.client.outcomes import Outcomes
from ottla.console.answers import Page
from ottla.console.html import Content, Markup, tag
from ottla.console.named import named_path
from ottla.console.parts.words import Mood, badge, link, notice, tabs, told
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.failures import message_of

K = TypeVar("K")
V = TypeVar("V")

SHARE = "share"
STREAMS = "streams"
SPARK = "Spark query"
# The group under which a Spark query commits what it has read (`ottla.spark.progress`); it never has members.
_SPARK_PREFIX = "spark-"
_KINDS = {
    "classic": "classic",
    "consumer": "consumer (KIP-848)",
    SHARE: "share",
    STREAMS: "streams",
}


def kind_of(group: GroupListing) -> str:
    """The kind as the list shows and filters it: one word."""
    return SPARK if is_spark(group.group_id, group.kind) else group.kind.lower()


def is_spark(group_id: str, kind: str) -> bool:
    return kind == "classic" and group_id.startswith(_SPARK_PREFIX)


def kind_text(group_id: str, kind: str) -> str:
    """The kind in words."""
    return SPARK if is_spark(group_id, kind) else _KINDS.get(kind, kind)


def state_badge(state: str) -> Markup:
    mood: Mood = "plain"
    if state == "Stable":
        mood = "good"
    elif state in REBALANCING:
        mood = "fair"
    elif state == "Dead":
        mood = "bad"
    return badge(state or "unknown", mood)


def lag_mood(seconds: float | None) -> Mood:
    if seconds is None:
        return "plain"
    return "good" if seconds < 10 else "fair" if seconds < 600 else "bad"


def waited_text(seconds: float | None) -> str:
    return "unknown" if seconds is None else "0 s" if seconds == 0 else span(seconds)


def count_text(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def group_link(group_id: str) -> Markup:
    return link(told(group_id) if group_id else "(the empty name)", named_path("groups", group_id))


def at_text(at: TopicPartition) -> str:
    return f"{at.topic}-{at.partition}"


def failures(outcomes: Outcomes[K, V], verb: str) -> Markup | None:
    """The parts for which something failed, and why; None if all went well."""
    if not outcomes.failed:
        return None
    shown = list(outcomes.failed.items())[: limits.CONSOLE_ROWS]
    items = [tag("li", told(f"{part}: {message_of(error)}")) for part, error in shown]
    more = len(outcomes.failed) - len(shown)
    said = f"{len(outcomes.failed):,} of {len(outcomes.failed) + len(outcomes.found):,} were not {verb}."
    return notice(said, "bad", [tag("ul", items), f"and {more:,} more" if more else None])


def of_group(group_id: str, here: str, title: str, *content: Content, status: int = 200) -> Page:
    """A page of a group, with the tabs of all of them; `here` is the last segment of its address."""
    parts = (
        ("Now", ""),
        ("Assignment", "assignment"),
        ("Partitions", "partitions"),
        ("Explain the lag", "lag"),
        ("Explain rebalances", "rebalances"),
        ("Reset offsets", "reset"),
        ("Delete", "delete"),
    )
    named = [(text, named_path("groups", group_id, *([each] if each else []))) for text, each in parts]
    trail: tuple[tuple[str, str], ...] = (("Groups", "/groups"),)
    if here:
        trail += ((group_id, named_path("groups", group_id)),)
    address = named_path("groups", group_id, *([here] if here else []))
    return Page(title, [tabs(named, address), *content], trail, status)
