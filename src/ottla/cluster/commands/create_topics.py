"""CreateTopics: create topics with their configuration and partitions; each succeeds or fails by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.cluster.commands.assign import place_automatically, place_by_hand
from ottla.cluster.decision import Deciding, gathered
from ottla.cluster.entities import Placed
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.snapshot import config_entry, new_partition_entries
from ottla.cluster.tenant_rules import check_dead_letters
from ottla.cluster.topic_rules import TopicRules, rules_for
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.machine.stepped import Steps
from ottla.model.config_checks import check_topic_config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, random_uuid
from ottla.model.limits import METADATA_RECORDS_PER_SLICE, PARTITIONS_PER_REQUEST_MAX, TOPICS_PER_REQUEST_MAX
from ottla.model.names import CLUSTER_METADATA_TOPIC, check_topic_name, collision_key
from ottla.model.resources import Resource, ResourceType
from ottla.model.settings.node import DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
from ottla.security.quotas.mutations import PartitionQuota
from ottla.wire.journal import cluster_metadata as journal

DEFAULT = -1


@dataclass(frozen=True, slots=True)
class TopicToCreate:
    """A topic to create. `assignments` (partition, brokers) replace both counts, which must then be left at -1."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


class TopicOutcome(NamedTuple):
    """The result for one topic; with an error, the other fields are empty."""

    name: str
    error: ApiError | None
    id: bytes = NO_ID
    partitions: int = -1
    replication_factor: int = -1


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """Replies with a TopicOutcome for each name: the topics in their order, then the names that are listed twice or
    reserved.
    """

    topics: tuple[TopicToCreate, ...]
    validate_only: bool = False
    quota: PartitionQuota | None = None
    exempt: bool = False  # whether the topic policy does not apply

    def decide(self, view: MetadataView, now_ms: int) -> Deciding[list[TopicOutcome]]:
        if len(self.topics) > TOPICS_PER_REQUEST_MAX:
            raise ApiError(ErrorCode.POLICY_VIOLATION, "Excessively large number of topics per request.")
        check_total(topic.partitions for topic in self.topics)
        times = Counter(topic.name for topic in self.topics)
        rules = yield from rules_for(view, times, exempt=self.exempt)
        records: list[MetadataEntry] = []
        outcomes: list[TopicOutcome] = []
        if self.quota is not None:
            self.quota.begin()
        for topic in self.topics:
            if times[topic.name] > 1 or topic.name == CLUSTER_METADATA_TOPIC:
                continue
            try:
                outcomes.append((yield from _create(view, topic, records, rules, self.quota)))
            except ApiError as error:
                outcomes.append(TopicOutcome(topic.name, error))
        for name, count in times.items():
            if count > 1:
                problem = "Duplicate topic name."
            elif name == CLUSTER_METADATA_TOPIC:
                problem = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
            else:
                continue
            outcomes.append(TopicOutcome(name, ApiError(ErrorCode.INVALID_REQUEST, problem)))
        return Result([] if self.validate_only else records, outcomes)


def check_total(partitions: Iterable[int]) -> None:
    """Refuse the whole request if it would create too many partitions."""
    if sum(max(0, count) for count in partitions) > PARTITIONS_PER_REQUEST_MAX:
        raise ApiError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _create(
    view: MetadataView,
    topic: TopicToCreate,
    records: list[MetadataEntry],
    rules: TopicRules,
    quota: PartitionQuota | None,
) -> Steps[TopicOutcome]:
    _check_name(view, topic.name)
    configs = _configs(topic)
    check_topic_config(view.config(), configs)
    check_dead_letters(view, Resource(ResourceType.TOPIC, topic.name), configs)
    partitions = (yield from _by_hand(view, topic)) if topic.assignments else _automatic(view, topic)
    count, replication_factor = len(partitions), len(partitions[0][1].replicas)
    rules.admit(topic.name, count, count, replication_factor, view.config().topic(configs))
    if quota is not None:
        quota.take(count)
    topic_id = random_uuid(view.rng)
    level = view.state.metadata_version
    records.append(MetadataEntry(journal.TopicRecord(name=topic.name, topic_id=topic_id)))
    resource = Resource(ResourceType.TOPIC, topic.name)
    records.extend(config_entry(resource, name, value) for name, value in configs.items())
    records += yield from gathered(new_partition_entries(topic_id, partitions, level))
    return TopicOutcome(topic.name, None, topic_id, count, replication_factor)


def _check_name(view: MetadataView, name: str) -> None:
    if name in view.state.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    check_topic_name(name)
    colliding = view.state.colliding.get(collision_key(name))
    if colliding:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {colliding[0]}"
        )


def _configs(topic: TopicToCreate) -> dict[str, str]:
    missing = [name for name, value in topic.configs if value is None]
    if missing:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(missing)}")
    return {name: value for name, value in topic.configs if value is not None}


def _by_hand(view: MetadataView, topic: TopicToCreate) -> Steps[list[Placed]]:
    prefix = "A manual partition assignment was specified, but"
    if topic.replication_factor != DEFAULT:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{prefix} replication factor was not set to -1.")
    if topic.partitions != DEFAULT:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{prefix} numPartitions was not set to -1.")
    found: dict[int, Placed] = {}
    replication_factor = None
    for number, (index, replicas) in enumerate(topic.assignments, start=1):
        if number % METADATA_RECORDS_PER_SLICE == 0:
            yield
        if index in found:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        found[index] = place_by_hand(view, index, replicas, replication_factor)
        replication_factor = len(replicas)
    if sorted(found) != list(range(len(found))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return [found[index] for index in range(len(found))]


def _automatic(view: MetadataView, topic: TopicToCreate) -> list[Placed]:
    if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.partitions < DEFAULT or topic.partitions == 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    count, replication_factor = topic.partitions, topic.replication_factor
    if count == DEFAULT:
        count = view.defaults[NUM_PARTITIONS]
    if replication_factor == DEFAULT:
        replication_factor = view.defaults[DEFAULT_REPLICATION_FACTOR]
    try:
        return place_automatically(view, 0, count, replication_factor)
    except ApiError as error:
        raise ApiError(
            error.code, f"Unable to replicate the partition {replication_factor} time(s): {error.message}"
        ) from None
