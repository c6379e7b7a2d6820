"""What changed between two samples of a cluster, in sentences. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from ottla.client.metadata import NO_LEADER, PartitionInfo, replicas_behind
from ottla.console.html import path_to
from ottla.console.named import named_path
from ottla.console.parts.words import Mood
from ottla.model.ids import TopicPartition
from ottla.operations.sampling.sample import TopSample

_SHOWN = 3
_REBALANCES = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
Settings = Mapping[str, Mapping[str, str | None]]  # by what has them, `topic orders`, and by name


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """One thing that changed; `to` is the page that shows it."""

    time_ms: int
    what: str
    mood: Mood = "plain"
    to: str | None = None


def changes_between(
    before: TopSample, now: TopSample, moving: Set[TopicPartition], time_ms: int
) -> list[ClusterChange]:
    """What changed in brokers, topics and partitions; replicas that come while a partition moves are not behind."""
    found = [*_brokers(before, now, time_ms)]
    if before.topics and now.topics:
        found += [*_topics(before, now, time_ms), *_partitions(before, now, moving, time_ms)]
    return found


def changed_groups(before: TopSample, now: TopSample, time_ms: int) -> list[ClusterChange]:
    """What changed in groups; a rebalance between two samples is not seen."""
    earlier = {each.group_id: each.state for each in before.groups}
    later = {each.group_id: each.state for each in now.groups}
    found = [
        *_named(time_ms, "group", later.keys() - earlier.keys(), "began", "groups"),
        *_named(time_ms, "group", earlier.keys() - later.keys(), "ended", "groups"),
    ]
    for name in sorted(earlier.keys() & later.keys()):
        was, now_is = earlier[name], later[name]
        if was != now_is and now_is in _REBALANCES:
            found.append(ClusterChange(time_ms, f"group {name} rebalances", "fair", named_path("groups", name)))
        elif was != now_is and now_is == "Empty":
            found.append(
                ClusterChange(time_ms, f"group {name} has no members any more", "fair", named_path("groups", name))
            )
        elif was in _REBALANCES and now_is == "Stable":
            found.append(ClusterChange(time_ms, f"group {name} is stable", "good", named_path("groups", name)))
    return found


def changed_settings(before: Settings, now: Settings, time_ms: int) -> list[ClusterChange]:
    """What changed in the settings of what is in both."""
    found = []
    for owner in sorted(before.keys() & now.keys()):
        kind, _, name = owner.partition(" ")
        to = named_path(f"{kind}s", name) if name else path_to("brokers")
        for setting in sorted(before[owner].keys() | now[owner].keys()):
            was, now_is = before[owner].get(setting), now[owner].get(setting)
            if was != now_is:
                how = (
                    "is back to its default"
                    if now_is is None
                    else f"is {now_is!r}" + ("" if was is None else f", was {was!r}")
                )
                found.append(ClusterChange(time_ms, f"{owner}: {setting} {how}", "plain", to))
    return found


def _brokers(before: TopSample, now: TopSample, time_ms: int) -> Iterable[ClusterChange]:
    earlier = {each.node_id: each for each in before.brokers}
    later = {each.node_id: each for each in now.brokers}
    for node_id in sorted(earlier.keys() | later.keys()):
        was, now_is = earlier.get(node_id), later.get(node_id)
        to = path_to("brokers", node_id)
        if now_is is None:
            yield ClusterChange(time_ms, f"broker {node_id} is gone", "fair", path_to("brokers"))
        elif was is None:
            yield ClusterChange(time_ms, f"broker {node_id} joined the cluster", "good", to)
        elif was.is_fenced != now_is.is_fenced:
            what, mood = (
                (f"broker {node_id} is down", "bad") if now_is.is_fenced else (f"broker {node_id} is up", "good")
            )
            yield ClusterChange(time_ms, what, mood, to)  # type: ignore[arg-type]


def _topics(before: TopSample, now: TopSample, time_ms: int) -> Iterable[ClusterChange]:
    earlier = {each.name: len(each.partitions) for each in before.topics}
    later = {each.name: len(each.partitions) for each in now.topics}
    yield from _named(time_ms, "topic", later.keys() - earlier.keys(), "was created", "topics")
    yield from _named(time_ms, "topic", earlier.keys() - later.keys(), "was deleted", "topics")
    for name in sorted(earlier.keys() & later.keys()):
        if earlier[name] != later[name]:
            what = f"topic {name} has {later[name]} partitions, had {earlier[name]}"
            yield ClusterChange(time_ms, what, "plain", path_to("topics", name))


def _partitions(
    before: TopSample, now: TopSample, moving: Set[TopicPartition], time_ms: int
) -> Iterable[ClusterChange]:
    earlier, later = _by_partition(before), _by_partition(now)
    both = sorted(earlier.keys() & later.keys())
    moved = [at for at in both if NO_LEADER != earlier[at].leader != later[at].leader != NO_LEADER]
    lost = [at for at in both if later[at].leader == NO_LEADER != earlier[at].leader]
    found = [at for at in both if earlier[at].leader == NO_LEADER != later[at].leader]
    still = [at for at in both if at not in moving and set(earlier[at].replicas) == set(later[at].replicas)]
    behind = [at for at in still if _is_behind(later[at]) and not _is_behind(earlier[at])]
    again = [at for at in still if _is_behind(earlier[at]) and not _is_behind(later[at])]
    for which, what, mood in (
        (moved, "{} moved to another leader", "plain"),
        (lost, "{} has no leader", "bad"),
        (found, "{} has a leader again", "good"),
        (behind, "{} is under-replicated", "fair"),
        (again, "{} has all replicas in sync again", "good"),
    ):
        if which:
            to = path_to("topics", which[0].topic) if len(which) == 1 else path_to("topics")
            yield ClusterChange(time_ms, what.format(_some("partition", map(str, which))), mood, to)  # type: ignore[arg-type]


def _named(time_ms: int, noun: str, names: Iterable[str], did: str, place: str) -> list[ClusterChange]:
    listed = sorted(names)
    if not listed:
        return []
    to = named_path(place, listed[0]) if len(listed) == 1 and not did.endswith(("deleted", "ended")) else path_to(place)
    return [ClusterChange(time_ms, f"{_some(noun, listed)} {did}", "plain", to)]


def _some(noun: str, names: Iterable[str]) -> str:
    listed = list(names)
    if len(listed) == 1:
        return f"{noun} {listed[0]}"
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return f"each of {len(listed)} {noun}s ({', '.join(listed[:_SHOWN])}{more})"


def _by_partition(sample: TopSample) -> dict[TopicPartition, PartitionInfo]:
    return {TopicPartition(topic.name, each.index): each for topic in sample.topics for each in topic.partitions}


def _is_behind(partition: PartitionInfo) -> bool:
    """Whether a replica is not in sync."""
    return bool(replicas_behind(partition.replicas, partition.isr))
