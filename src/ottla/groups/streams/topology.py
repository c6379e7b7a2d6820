"""Topology: the topics and subtopologies of a Kafka Streams application, from which its tasks follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

ANY_PARTITIONS = 0  # the number of partitions depends on other topics
DEFAULT_REPLICATION = 0


class InternalTopic(NamedTuple):
    """An internal topic of the application, as the topology requires it."""

    name: str
    partitions: int = ANY_PARTITIONS
    replication_factor: int = DEFAULT_REPLICATION
    configs: tuple[tuple[str, str], ...] = ()


class Copartition(NamedTuple):
    """Topics that must have equally many partitions, by their indexes in the subtopology's lists."""

    source_topics: tuple[int, ...] = ()
    source_regexes: tuple[int, ...] = ()
    repartition_sources: tuple[int, ...] = ()


class Subtopology(NamedTuple):
    """A part of the topology that is computed partition by partition."""

    id: str
    source_topics: tuple[str, ...]
    source_regexes: tuple[str, ...] = ()
    changelogs: tuple[InternalTopic, ...] = ()
    repartition_sinks: tuple[str, ...] = ()
    repartition_sources: tuple[InternalTopic, ...] = ()
    copartitions: tuple[Copartition, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """All topics it reads."""
        return (*self.source_topics, *(topic.name for topic in self.repartition_sources))


@dataclass(frozen=True, slots=True)
class Topology:
    """A topology. All members with the same version of an application have the same one; `epoch` counts the
    versions.
    """

    epoch: int
    subtopologies: tuple[Subtopology, ...]

    def is_same(self, other: Topology) -> bool:
        """Whether both are equal; the order of the subtopologies does not matter."""
        return self.epoch == other.epoch and self.by_id() == other.by_id()

    def by_id(self) -> Mapping[str, Subtopology]:
        return {each.id: each for each in self.subtopologies}

    def required_topics(self) -> frozenset[str]:
        """Return all topics that must exist before it can run."""
        names: set[str] = set()
        for each in self.subtopologies:
            names.update(each.inputs)
            names.update(topic.name for topic in each.changelogs)
        return frozenset(names)

    def reader_of(self, topic: str) -> Subtopology | None:
        """Return the subtopology that reads a topic."""
        return next((each for each in self.subtopologies if topic in each.inputs), None)
