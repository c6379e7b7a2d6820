"""Compares a topology with the existing topics: how many tasks it has, and which internal topics are missing.

If the topology leaves the partition count of a repartition topic open, it becomes the largest count among the topics
that feed it; this is repeated until no count is open. Copartitioned repartition topics then get the count of the topics
they are joined with. Changelogs have one partition per task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.groups.streams.topology import ANY_PARTITIONS, InternalTopic, Subtopology, Topology
from ottla.groups.view import GroupTopics
from ottla.model.errors import ApiError, ErrorCode

_SUMMARY_MAX = 3


class StreamsStatus(IntEnum):
    """The statuses of a group that its members are told, by the numbers of Kafka's protocol."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class StatusDetail(NamedTuple):
    """A status with its explanation."""

    status: StreamsStatus
    detail: str


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with the partition counts of all its internal topics."""

    tasks: int
    source_topics: frozenset[str]
    repartition_sinks: frozenset[str]
    repartition_sources: tuple[InternalTopic, ...]
    changelogs: tuple[InternalTopic, ...]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(sorted({*self.source_topics, *(topic.name for topic in self.repartition_sources)}))


class Configured(NamedTuple):
    """The result: a topology without a problem can run. `missing` topics are to be created."""

    subtopologies: Mapping[str, ConfiguredSubtopology]
    missing: tuple[InternalTopic, ...] = ()
    problem: StatusDetail | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class _TopicProblem(Exception):
    """The existing topics do not fit the topology."""

    def __init__(self, status: StreamsStatus, detail: str) -> None:
        super().__init__(detail)
        self.problem = StatusDetail(status, detail)


def configure(topology: Topology, topics: GroupTopics) -> Configured:
    """Compare a topology with the topics; raises STREAMS_INVALID_TOPOLOGY if no topics could satisfy it."""
    counts = _Counts(topics)
    try:
        _check_sources(topology, counts)
        _decide_repartitions(topology, counts)
        _copartition(topology, counts)
        _decide_changelogs(topology, counts)
        found = {each.id: _configured(each, counts) for each in sorted(topology.subtopologies)}
        missing = _missing(found.values(), topology, topics)
    except _TopicProblem as error:
        return Configured({}, problem=error.problem)
    problem = None
    if missing:
        names = [topic.name for topic in missing]
        problem = StatusDetail(StreamsStatus.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_summary(names)}")
    return Configured(found, missing, problem)


class _Counts:
    """Partition counts of topics: the real count of existing ones, else the decided one."""

    def __init__(self, topics: GroupTopics) -> None:
        self._topics = topics
        self.decided: dict[str, int] = {}

    def get(self, name: str) -> int | None:
        info = self._topics.by_name(name)
        return self.decided.get(name) if info is None else info.partitions

    def known(self, name: str) -> int:
        count = self.get(name)
        if count is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Number of partitions is not set for topic: {name}")
        return count


def _check_sources(topology: Topology, counts: _Counts) -> None:
    names = {name for each in topology.subtopologies for name in each.source_topics if counts.get(name) is None}
    if names:
        text = f"Source topics {_summary(sorted(names))} are missing."
        raise _TopicProblem(StreamsStatus.MISSING_SOURCE_TOPICS, text)


def _decide_repartitions(topology: Topology, counts: _Counts) -> None:
    decided: dict[str, int] = {}
    for each in topology.subtopologies:
        decided.update((topic.name, topic.partitions) for topic in each.repartition_sources if topic.partitions)
    while open_sinks := _decide_some(topology, counts, decided):
        if open_sinks < 0:
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved."
            )
    for each in topology.subtopologies:
        if any(topic.name not in decided for topic in each.repartition_sources):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics, because "
                "a repartition source topic is never used as a sink topic."
            )
    counts.decided.update(decided)


def _decide_some(topology: Topology, counts: _Counts, decided: dict[str, int]) -> int:
    """Decide the counts of sinks whose inputs are known; return how many stay open, negative if none was decided."""
    left = progress = 0
    for each in topology.subtopologies:
        for sink in each.repartition_sinks:
            if sink in decided:
                continue
            feeds = [decided.get(topic.name) for topic in each.repartition_sources]
            feeds += [counts.get(name) for name in each.source_topics]
            known = [count for count in feeds if count is not None]
            if known:
                decided[sink] = max(known)
                progress += 1
            else:
                left += 1
    return left if progress else -left


def _copartition(topology: Topology, counts: _Counts) -> None:
    repartitions = [topic for each in topology.subtopologies for topic in each.repartition_sources]
    fixed = {topic.name for topic in repartitions if topic.partitions != ANY_PARTITIONS}
    flexible = {topic.name for topic in repartitions if topic.partitions == ANY_PARTITIONS}
    for subtopology in topology.subtopologies:
        for names in _groups(subtopology):
            _copartition_group(names, fixed, flexible, counts)


def _groups(subtopology: Subtopology) -> Iterable[tuple[str, ...]]:
    try:
        for group in subtopology.copartitions:
            names = [subtopology.source_topics[place] for place in group.source_topics]
            names += [subtopology.repartition_sources[place].name for place in group.repartition_sources]
            yield tuple(sorted(set(names)))
    except IndexError as error:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"Subtopology {subtopology.id} copartitions topics it does not read."
        ) from error


def _copartition_group(names: tuple[str, ...], fixed: set[str], flexible: set[str], counts: _Counts) -> None:
    if not names:
        return
    inner = {name: counts.known(name) for name in names if name in fixed or name in flexible}
    outer = {name: counts.known(name) for name in names if name not in inner}
    if outer:
        wanted = _same(outer, outer)
    elif fixed:
        wanted = _same({name: counts.known(name) for name in sorted(fixed)}, inner)
    else:
        wanted = max(inner.values())
    for name, count in inner.items():
        if name in fixed and count != wanted:
            raise _TopicProblem(
                StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of partitions "
                f"[{wanted}] of the source topic.",
            )
        counts.decided[name] = wanted


def _same(sizes: Mapping[str, int], shown: Mapping[str, int]) -> int:
    """Return the count that all topics have; raises if they differ."""
    first, *others = sizes.values()
    if any(count != first for count in others):
        text = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        raise _TopicProblem(
            StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{text}}}]",
        )
    return first


def _decide_changelogs(topology: Topology, counts: _Counts) -> None:
    for each in topology.subtopologies:
        if not each.inputs:
            raise _invalid(f"No source topics found for subtopology {each.id}")
        most = max(counts.known(name) for name in each.inputs)
        counts.decided.update((topic.name, most) for topic in each.changelogs)


def _configured(subtopology: Subtopology, counts: _Counts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        max(counts.known(name) for name in subtopology.inputs),
        frozenset(subtopology.source_topics),
        frozenset(subtopology.repartition_sinks),
        _sized(subtopology.repartition_sources, counts),
        _sized(subtopology.changelogs, counts),
    )


def _sized(topics: Iterable[InternalTopic], counts: _Counts) -> tuple[InternalTopic, ...]:
    return tuple(
        topic._replace(partitions=topic.partitions or counts.decided[topic.name]) for topic in sorted(set(topics))
    )


def _missing(
    subtopologies: Iterable[ConfiguredSubtopology], topology: Topology, topics: GroupTopics
) -> tuple[InternalTopic, ...]:
    wanted: dict[str, InternalTopic] = {}
    for each in subtopologies:
        wanted.update((topic.name, topic) for topic in (*each.repartition_sources, *each.changelogs))
    for name in sorted(topology.required_topics()):
        info = topics.by_name(name)
        expected = wanted.pop(name, None) if info is not None else None
        if info is not None and expected is not None and expected.partitions != info.partitions:
            raise _TopicProblem(
                StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {expected.partitions}, "
                f"found {info.partitions}",
            )
    return tuple(wanted[name] for name in sorted(wanted))


def _summary(names: list[str]) -> str:
    more = len(names) - _SUMMARY_MAX
    return ", ".join(names[:_SUMMARY_MAX]) + (f" and {more} additional topics" if more > 0 else "")


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
