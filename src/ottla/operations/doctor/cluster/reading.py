"""Read a running cluster for the doctor: each part by itself, with a limit of time, and no more than a look needs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ottla.client.consumer.offsets import LATEST, MAX_TIMESTAMP, PartitionBounds
from ottla.client.errors import ClientError
from ottla.client.metadata import AdvertisedBroker, TopicInfo
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.model.topic_settings import (
    CLEANUP_POLICY,
    MIN_INSYNC_REPLICAS,
    OTTLA_SCHEMA_VALIDATION,
    OTTLA_SCHEMA_VALIDATION_DLQ,
    OTTLA_SCHEMA_VALIDATION_OF,
    OTTLA_SCHEMA_VALIDATION_SUBJECT,
    RETENTION_MS,
    SEGMENT_MS,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)
from ottla.operations.cluster.throttle import find as find_throttles
from ottla.operations.cluster.view import PATIENCE_S, TOPICS_AT_ONCE, disks, quorum_of
from ottla.operations.dead_letter_topics import topics_of_share_groups
from ottla.operations.doctor.cluster.cluster_seen import ClusterSeen, SeenPart, SeenTransaction
from ottla.operations.doctor.cluster.lags import lags_again, read_lags
from ottla.operations.doctor.settings.node_settings import SettingsSeen
from ottla.operations.errors import CommandError
from ottla.operations.failures import message_of
from ottla.operations.held_partitions import OPEN_STATES
from ottla.operations.security.sources import shown_certificates
from ottla.operations.threads import BlockingWork, in_thread

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.groups import GroupListing
    from ottla.client.admin.nodes import Feature
    from ottla.client.admin.topics import ActiveProducer
    from ottla.client.connection import VersionRange

T = TypeVar("T")
Tell = Callable[[str], None]  # takes a line for the user: what is done now, or a warning

_PART_S = 30.0  # how long one part may take
_HURRIED_PART_S = 6.0  # the same where a node is known to be away: some parts would wait for it
_OF_TOPICS = (
    CLEANUP_POLICY,
    MIN_INSYNC_REPLICAS,
    OTTLA_SCHEMA_VALIDATION,
    OTTLA_SCHEMA_VALIDATION_DLQ,
    OTTLA_SCHEMA_VALIDATION_OF,
    OTTLA_SCHEMA_VALIDATION_SUBJECT,
    RETENTION_MS,
    SEGMENT_MS,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)
_SHARE = "share"
_NO_REGISTRY = "no registry was named: --registry URL, or OTTLA_REGISTRY"


async def read_cluster(
    admin: Admin, sample_s: float, subjects: Callable[[], list[str]] | None, advance: Tell, warn: Tell
) -> ClusterSeen:
    """Read what the checks need; `subjects` asks a registry, `warn` hears what failed. Raises if no broker answers."""

    async def part(what: str, work: Awaitable[T]) -> SeenPart[T]:
        advance(f"cluster: reading {what}")
        return await _part(work, part_s)

    part_s = _PART_S
    brokers = await _brokers(admin)
    unreachable = await _unreachable(admin, [each for each in brokers if not each.is_fenced])
    reached = [each.node_id for each in brokers if not each.is_fenced and each.node_id not in unreachable]
    asked_ms = _now_ms()
    quorum = await part("the quorum", quorum_of(admin))
    now_ms = _now_ms()
    part_s = _HURRIED_PART_S if unreachable or quorum.value is None else _PART_S
    topics = await part("topics", admin.topics.all())
    led = _led(topics.value or (), reached)
    topic_settings = await part("settings of topics", _settings_of_topics(admin, topics.value or ()))
    settings = await part("settings of brokers", _settings_of_brokers(admin, reached, len(brokers), warn))
    bounds = await part("offsets", _bounds(admin, led))
    stable_ends = await part("stable offsets", _stable_ends(admin, led))
    groups = await part("groups", admin.groups.all())
    lags = await part("lag", read_lags(admin, groups.value or [], bounds.value or {}))
    producers = await part("producers", _producers(admin, _held(bounds.value or {}, stable_ends.value or {})))
    transactions = await part("transactions", _transactions(admin))
    moves = await part("moves", admin.replicas.reassignments())
    first_disks = await part("disks", disks(admin, reached))
    seen = ClusterSeen(
        asked_ms=asked_ms,
        now_ms=now_ms,
        brokers=brokers,
        unreachable=unreachable,
        quorum=quorum,
        versions=await part("versions", _versions(admin, reached)),
        features=await part("features", _features(admin, reached)),
        settings=settings,
        topics=topics,
        topic_settings=topic_settings,
        share_letters=await part("settings of share groups", _share_letters(admin, groups.value or ())),
        moves=moves,
        moves_later=moves,
        throttles=await part("throttles", find_throttles(admin)),
        disks=first_disks,
        disks_later=first_disks,
        bounds=bounds,
        stable_ends=stable_ends,
        last_times=await part("times of records", _last_times(admin, led)),
        groups=groups,
        groups_later=groups,
        lags=lags,
        producers=producers,
        producers_later=producers,
        transactions=transactions,
        transactions_later=transactions,
        subjects=await part("schemas", _subjects(subjects)),
        has_registry=subjects is not None,
    )
    return await _again(admin, seen, sample_s, reached, advance)


def _now_ms() -> int:
    return round(time.time() * 1000)


async def _again(
    admin: Admin, seen: ClusterSeen, sample_s: float, reached: list[int], advance: Callable[[str], None]
) -> ClusterSeen:
    """Look a second time at what has to change in a healthy cluster."""
    advance("cluster: looking a second time")
    await asyncio.sleep(sample_s)
    held = seen.producers.value or {}
    return replace(
        seen,
        moves_later=await _part(admin.replicas.reassignments()) if seen.moves.value else seen.moves,
        disks_later=await _part(disks(admin, reached)) if seen.moves.value else seen.disks,
        groups_later=await _part(admin.groups.all()) if seen.groups.value else seen.groups,
        producers_later=await _part(_producers(admin, list(held))) if held else seen.producers,
        transactions_later=await _part(_transactions(admin)) if held else seen.transactions,
        lags=await _part(lags_again(admin, seen.lags.value)) if seen.lags.value else seen.lags,
    )


async def _part(work: Awaitable[T], part_s: float = _PART_S) -> SeenPart[T]:
    try:
        async with asyncio.timeout(part_s):
            return SeenPart(await work)
    except TimeoutError:
        return SeenPart(None, f"no answer within {part_s:.0f} s")
    except (ClientError, ApiError, CommandError, OSError) as error:
        is_refused = isinstance(error, ApiError) and error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return SeenPart(None, message_of(error), is_refused)


async def _brokers(admin: Admin) -> tuple[AdvertisedBroker, ...]:
    described = await admin.nodes.describe(fenced=True)
    await admin.cluster.refresh()
    return described.brokers


async def _unreachable(admin: Admin, brokers: Sequence[AdvertisedBroker]) -> dict[int, str]:
    """Why brokers cannot be reached at the addresses that they advertise."""

    async def reach(broker: AdvertisedBroker) -> str | None:
        purpose = object()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await admin.cluster.connect(broker.address, purpose)
        except TimeoutError:
            return f"no answer within {PATIENCE_S:.0f} s"
        except ClientError as error:
            return str(error)
        finally:
            admin.cluster.disconnect(purpose)
        return None

    answers = await asyncio.gather(*map(reach, brokers))
    return {each.node_id: why for each, why in zip(brokers, answers, strict=True) if why is not None}


def _led(topics: Sequence[TopicInfo], reached: Sequence[int]) -> list[TopicPartition]:
    """The partitions whose leaders can be asked."""
    return [
        TopicPartition(topic.name, each.index)
        for topic in topics
        for each in topic.partitions
        if each.leader in reached
    ]


async def _subjects(ask: Callable[[], list[str]] | None) -> list[str]:
    if ask is None:
        raise CommandError(_NO_REGISTRY)
    return await in_thread(BlockingWork.registry, ask)


async def _settings_of_topics(admin: Admin, topics: Sequence[TopicInfo]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    wanted = [each.name for each in _OF_TOPICS]
    names = [each.name for each in topics]
    for first in range(0, len(names), TOPICS_AT_ONCE):
        resources = [Resource.topic(each) for each in names[first : first + TOPICS_AT_ONCE]]
        for resource, entries in (await admin.configs.describe_each(resources, wanted)).answered().items():
            found[resource.name] = {each.name: each.value for each in entries if each.value is not None}
    return found


def _held(
    bounds: Mapping[TopicPartition, PartitionBounds], stable_ends: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    return [at for at, each in bounds.items() if stable_ends.get(at, each.end) < each.end]


async def _share_letters(admin: Admin, groups: Sequence[GroupListing]) -> frozenset[str]:
    names = [each.group_id for each in groups if each.kind == _SHARE]
    return frozenset((await topics_of_share_groups(admin, names)).values())


async def _settings_of_brokers(
    admin: Admin, node_ids: Sequence[int], size: int, warn: Callable[[str], None]
) -> dict[int, SettingsSeen]:
    found = {}
    for node_id in node_ids:
        entries = await admin.configs.describe(Resource.broker(node_id))
        values = {each.name: each.value for each in entries if not each.is_default and each.value is not None}
        hidden = [each.name for each in entries if each.value is None and each.is_sensitive]
        certificates = await in_thread(BlockingWork.nodes, shown_certificates, values, warn)
        found[node_id] = SettingsSeen(values, hidden, certificates=tuple(certificates.items()), cluster_size=size)
    return found


async def _bounds(admin: Admin, led: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionBounds]:
    return (await admin.topics.bounds_each(led)).found


async def _stable_ends(admin: Admin, led: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    ends = await admin.topics.offsets_each(dict.fromkeys(led, LATEST), read_committed=True)
    return {at: each.offset for at, each in ends.found.items()}


async def _last_times(admin: Admin, led: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    times = await admin.topics.offsets_each(dict.fromkeys(led, MAX_TIMESTAMP))
    return {at: each.timestamp for at, each in times.found.items()}


async def _versions(admin: Admin, node_ids: Sequence[int]) -> dict[int, dict[int, VersionRange]]:
    return {node_id: await admin.nodes.api_versions(node_id) for node_id in node_ids}


async def _features(admin: Admin, node_ids: Sequence[int]) -> dict[int, list[Feature]]:
    return {node_id: await admin.nodes.features(node_id) for node_id in node_ids}


async def _producers(admin: Admin, held: Sequence[TopicPartition]) -> dict[TopicPartition, list[ActiveProducer]]:
    return (await admin.topics.producers_each(held)).found


async def _transactions(admin: Admin) -> list[SeenTransaction]:
    listed = await admin.transactions.all()
    found = await admin.transactions.describe_each(
        [each.transactional_id for each in listed if each.state in OPEN_STATES]
    )
    return [
        SeenTransaction(name, each.producer_id, each.started_ms, each.timeout_ms, each.partitions)
        for name, each in found.found.items()
    ]
