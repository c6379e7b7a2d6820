"""What the pages of one topic share: its tabs, its address, and the way back to the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ottla.client.metadata import NO_LEADER, PartitionInfo, TopicInfo, replicas_behind
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to
from ottla.console.parts.words import badge, notice, tabs
from ottla.model.ids import TopicPartition

# Of partitions with a reassignment under way, the replicas that are being added.
Adding: TypeAlias = Mapping[TopicPartition, Sequence[int]]
TOPICS = "/topics"
# No topic can have this name, so that the page is in nobody's way.
NEW = path_to("topics", "+new")
_TABS = (
    ("Overview", ""),
    ("Records", "records"),
    ("Search", "search"),
    ("Live", "live"),
    ("Produce", "produce"),
    ("Settings", "settings"),
    ("Storage", "storage"),
    ("Heat", "heat"),
    ("Totals", "totals"),
)
# Where groups, transactions and schema registries keep their state.
_INTERNAL_PREFIX = "__"
_SCHEMAS = "_schemas"


def topic_path(topic: str, *parts: str | int, **query: str | int | None) -> str:
    """The address of a page of a topic."""
    return path_to("topics", topic, *parts, **query)


def topic_page(topic: str, *content: Content, tab: str = "", title: str = "", status: int = 200) -> Page:
    """A page of a topic with its tabs; one with a `title` of its own is below the tab."""
    trail: tuple[tuple[str, str], ...] = (("Topics", TOPICS),)
    if title:
        trail = (*trail, (topic, topic_path(topic)))
    named = [(text, topic_path(topic, *([name] if name else []))) for text, name in _TABS]
    bar = tabs(named, topic_path(topic, *([tab] if tab else [])))
    return Page(title or topic, [bar, *content], trail, status)


def topic_of(call: PageCall) -> str:
    return call.params["topic"]


def is_internal(topic: str) -> bool:
    """Whether the cluster or a registry keeps its own state there."""
    return topic.startswith(_INTERNAL_PREFIX) or topic == _SCHEMAS


def warn_of_internal(topic: str) -> Markup | None:
    """A warning before something of an internal topic is changed."""
    if not is_internal(topic):
        return None
    return notice(
        "This is an internal topic: groups, transactions or schema registries keep their state there.",
        "bad",
        "What is lost or changed in it is lost for them.",
    )


def is_offline(partition: PartitionInfo) -> bool:
    return partition.leader == NO_LEADER


def is_under_replicated(topic: str, partition: PartitionInfo, adding: Adding) -> bool:
    being_added = adding.get(TopicPartition(topic, partition.index), ())
    return bool(replicas_behind(partition.replicas, partition.isr, being_added))


def count_behind(topic: TopicInfo, adding: Adding) -> int:
    """The number of its partitions that are under-replicated."""
    return sum(is_under_replicated(topic.name, each, adding) for each in topic.partitions)


def state_of(topic: TopicInfo, adding: Adding) -> Markup:
    """How well the partitions of a topic are, in a word."""
    offline = sum(map(is_offline, topic.partitions))
    if offline:
        return badge(f"{offline} offline", "bad")
    behind = count_behind(topic, adding)
    return badge(f"{behind} under-replicated", "fair") if behind else badge("well", "good")


def ailment_of(topic: TopicInfo, adding: Adding) -> tuple[int, int]:
    """By how ill a topic is: its offline and its under-replicated partitions."""
    return sum(map(is_offline, topic.partitions)), count_behind(topic, adding)
