"""CreatePartitions: add partitions to topics; the number of partitions never shrinks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from ottla.cluster.commands.assign import place_automatically, place_by_hand
from ottla.cluster.decision import Deciding, gathered
from ottla.cluster.entities import Placed, Topic
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.snapshot import new_partition_entries
from ottla.cluster.topic_rules import TopicRules, rules_for
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.machine.stepped import Steps
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import PARTITIONS_PER_REQUEST_MAX, PARTITIONS_PER_TOPIC_MAX
from ottla.security.quotas.mutations import PartitionQuota


@dataclass(frozen=True, slots=True)
class Growth:
    """A topic and the number of partitions it shall have; `assignments` are the brokers of each new partition."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


class Grown(NamedTuple):
    """The result for one topic."""

    name: str
    error: ApiError | None


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """Replies with a Grown for each name: those given twice first, then the others in their order."""

    topics: tuple[Growth, ...]
    validate_only: bool = False
    quota: PartitionQuota | None = None
    exempt: bool = False  # whether the topic policy does not apply

    def decide(self, view: MetadataView, now_ms: int) -> Deciding[list[Grown]]:
        times = Counter(topic.name for topic in self.topics)
        twice = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        outcomes = [Grown(name, twice) for name, count in times.items() if count > 1]
        records: list[MetadataEntry] = []
        rules = yield from rules_for(view, times, exempt=self.exempt)
        if self.quota is not None:
            self.quota.begin()
        for growth in self.topics:
            if times[growth.name] > 1:
                continue
            try:
                left = PARTITIONS_PER_REQUEST_MAX - len(records)
                records += yield from _grow(view, growth, left, rules, self.quota)
                outcomes.append(Grown(growth.name, None))
            except _TooManyError:
                raise
            except ApiError as error:
                outcomes.append(Grown(growth.name, error))
        return Result([] if self.validate_only else records, outcomes)


class _TooManyError(ApiError):
    """Refuses the whole request, as Kafka does."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def _grow(
    view: MetadataView, growth: Growth, left: int, rules: TopicRules, quota: PartitionQuota | None
) -> Steps[list[MetadataEntry]]:
    topic = view.state.topics.get(growth.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    level = view.state.metadata_version
    placed = yield from _new_partitions(view, topic, growth, left, rules, quota)
    return (yield from gathered(new_partition_entries(topic.id, placed, level)))


def _new_partitions(
    view: MetadataView, topic: Topic, growth: Growth, left: int, rules: TopicRules, quota: PartitionQuota | None
) -> Steps[list[Placed]]:
    have = len(topic.partitions)
    more = growth.count - have
    if more == 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if more < 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {have} partition(s); {growth.count} would not be an increase.",
        )
    if more > left:
        raise _TooManyError
    if growth.count > PARTITIONS_PER_TOPIC_MAX:
        raise ApiError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    if growth.assignments is not None and len(growth.assignments) != more:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {more} additional partition(s), but only {len(growth.assignments)} assignment(s) were "
            "specified.",
        )
    replication_factor = len(topic.partitions[0].replicas)
    rules.admit(topic.name, more, growth.count, replication_factor)
    if quota is not None:
        quota.take(more)
    if growth.assignments is None:
        return place_automatically(view, have, more, replication_factor)
    return (
        yield from gathered(
            place_by_hand(view, have + index, replicas, replication_factor)
            for index, replicas in enumerate(growth.assignments)
        )
    )
