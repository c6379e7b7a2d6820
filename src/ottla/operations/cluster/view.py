"""The cluster as `ottla cluster` sees it: brokers, partitions with their sizes, moves under way; and the problems.

Sizes come from the brokers that answer; those of a broker that is away are unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.admin.nodes import LogDir
from ottla.client.admin.replicas import Reassignment
from ottla.client.admin.voters import QuorumState
from ottla.client.errors import ClientError
from ottla.client.metadata import NO_LEADER, AdvertisedBroker, replicas_behind
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.model.topic_settings import MIN_INSYNC_REPLICAS
from ottla.operations.cluster.voters import in_doubt, look_around

if TYPE_CHECKING:
    from ottla.client.admin import Admin

_MIN_ISR = MIN_INSYNC_REPLICAS.name
TOPICS_AT_ONCE = 500
_LEADER_S = 10.0  # elections take a second or two
PATIENCE_S = 5.0  # how long to wait for a broker that may be gone


class PartitionView(NamedTuple):
    """One partition; `size_bytes` is that of its largest replica."""

    at: TopicPartition
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int
    size_bytes: int
    move: Reassignment | None

    @property
    def is_offline(self) -> bool:
        return self.leader == NO_LEADER

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica is not in sync; replicas that a move is adding do not count."""
        return bool(replicas_behind(self.replicas, self.isr, () if self.move is None else self.move.adding))

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.isr) < self.min_isr

    @property
    def target(self) -> tuple[int, ...]:
        """Its replicas when the move under way has ended."""
        return self.replicas if self.move is None else self.move.target


class BrokerView(NamedTuple):
    """One broker; sizes are None if they are not known."""

    broker: AdvertisedBroker
    leaders: int
    replicas: int
    size_bytes: int | None
    disk_bytes: int | None
    free_bytes: int | None
    failed: tuple[str, ...] = ()  # paths of log directories with errors

    @property
    def id(self) -> int:
        return self.broker.node_id


class ClusterView(NamedTuple):
    cluster_id: str
    quorum: QuorumState
    brokers: tuple[BrokerView, ...]
    partitions: tuple[PartitionView, ...]
    in_doubt: tuple[int, ...] = ()  # voters that do not vote yet, because they started with an empty disk

    def problems(self) -> dict[str, list[str]]:
        """The problems by kind; empty if there are none."""
        found = {
            "offline": [str(each.at) for each in self.partitions if each.is_offline],
            "under_min_isr": [str(each.at) for each in self.partitions if each.is_under_min_isr],
            "under_replicated": [str(each.at) for each in self.partitions if each.is_under_replicated],
            "fenced_brokers": [str(each.id) for each in self.brokers if each.broker.is_fenced],
            "failed_directories": [f"{path} of broker {each.id}" for each in self.brokers for path in each.failed],
            "voters_in_doubt": [str(each) for each in self.in_doubt],
        }
        return {kind: names for kind, names in found.items() if names}

    def broker(self, node_id: int) -> BrokerView | None:
        return next((each for each in self.brokers if each.id == node_id), None)


async def look(admin: Admin) -> ClusterView:
    """Request the whole view of the cluster."""
    quorum = await quorum_of(admin)
    described, moves, doubtful = await asyncio.gather(
        admin.nodes.describe(fenced=True), admin.replicas.reassignments(), in_doubt(admin, quorum)
    )
    topics = await admin.topics.all()
    min_isr = await _min_isr(admin, [each.name for each in topics])
    dirs = await disks(admin, [each.node_id for each in described.brokers if not each.is_fenced])
    sizes = largest(dirs)
    moving = {each.partition: each for each in moves}
    partitions = []
    for topic in topics:
        for each in topic.partitions:
            at = TopicPartition(topic.name, each.index)
            partitions.append(
                PartitionView(
                    at,
                    each.leader,
                    each.replicas,
                    each.isr,
                    min(min_isr.get(topic.name, 1), len(each.replicas)),
                    sizes.get(at, 0),
                    moving.get(at),
                )
            )
    brokers = tuple(_broker(each, partitions, dirs) for each in described.brokers)
    return ClusterView(described.cluster_id, quorum, brokers, tuple(sorted(partitions)), doubtful)


async def quorum_of(admin: Admin) -> QuorumState:
    """The quorum as its leader describes it. Raises CommandError if there is no leader."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LEADER_S):
            return await admin.voters.quorum()
    return await look_around(admin)


def largest(dirs: Mapping[int, list[LogDir]]) -> dict[TopicPartition, int]:
    """The size of each partition: that of its largest replica."""
    sizes: dict[TopicPartition, int] = {}
    for found in dirs.values():
        for replica in (each for directory in found for each in directory.replicas if not each.is_future):
            at = TopicPartition(replica.topic, replica.partition)
            sizes[at] = max(sizes.get(at, 0), replica.size_bytes)
    return sizes


async def disks(admin: Admin, node_ids: Sequence[int]) -> dict[int, list[LogDir]]:
    """The log directories of the brokers that answer in time."""

    async def ask(node_id: int) -> list[LogDir] | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await admin.nodes.log_dirs([node_id])
        except (ClientError, ApiError, TimeoutError):
            return None

    answers = await asyncio.gather(*(ask(each) for each in node_ids))
    return {node_id: found for node_id, found in zip(node_ids, answers, strict=True) if found is not None}


async def rates(admin: Admin, view: ClusterView, sample_s: float) -> dict[TopicPartition, float]:
    """Bytes per second that partitions grow by and that their leaders send to consumers, measured for `sample_s`.

    Bytes that followers send are not counted, because a change of leaders does not move them. Kafka's brokers do not
    report the bytes that they send.
    """
    alive = [each.id for each in view.brokers if not each.broker.is_fenced]
    leaders = {each.at: each.leader for each in view.partitions}
    loop = asyncio.get_running_loop()
    before, began_s = await disks(admin, alive), loop.time()
    await asyncio.sleep(sample_s)
    after, took_s = await disks(admin, alive), loop.time() - began_s
    found: dict[TopicPartition, float] = {}
    for count in (largest, lambda dirs: _sent(dirs, leaders)):
        first = count(before)
        for at, end in count(after).items():
            found[at] = found.get(at, 0.0) + max(0, end - first.get(at, end)) / took_s
    return found


def _sent(dirs: Mapping[int, list[LogDir]], leaders: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The bytes that leaders have sent to consumers, as far as they report them."""
    sent: dict[TopicPartition, int] = {}
    for node_id, found in dirs.items():
        for replica in (each for directory in found for each in directory.replicas):
            at = TopicPartition(replica.topic, replica.partition)
            if not replica.is_future and replica.sent_bytes >= 0 and leaders.get(at) == node_id:
                sent[at] = replica.sent_bytes
    return sent


async def _min_isr(admin: Admin, names: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for first in range(0, len(names), TOPICS_AT_ONCE):
        resources = [Resource.topic(each) for each in names[first : first + TOPICS_AT_ONCE]]
        for resource, entries in (await admin.configs.describe_each(resources, [_MIN_ISR])).answered().items():
            found[resource.name] = int(next((each.value for each in entries if each.value), "1"))
    return found


def _broker(broker: AdvertisedBroker, partitions: list[PartitionView], dirs: Mapping[int, list[LogDir]]) -> BrokerView:
    own = dirs.get(broker.node_id)
    failed = [each for each in own or () if each.error != ErrorCode.NONE]
    usable = [each for each in own or () if each not in failed]
    known = [each for each in usable if each.total_bytes >= 0]
    return BrokerView(
        broker,
        sum(each.leader == broker.node_id for each in partitions),
        sum(broker.node_id in each.replicas for each in partitions),
        sum(replica.size_bytes for each in usable for replica in each.replicas) if usable else None,
        sum(each.total_bytes for each in known) if known else None,
        sum(each.usable_bytes for each in known) if known else None,
        tuple(each.path for each in failed),
    )


def status_json(view: ClusterView) -> dict[str, Any]:
    """The status for scripts."""
    return {
        "cluster_id": view.cluster_id,
        "controller": view.quorum.leader_id,
        "controller_epoch": view.quorum.leader_epoch,
        "brokers": [
            {
                "id": each.id,
                "host": each.broker.host,
                "port": each.broker.port,
                "rack": each.broker.rack,
                "fenced": each.broker.is_fenced,
                "leaders": each.leaders,
                "replicas": each.replicas,
                "size_bytes": each.size_bytes,
                "disk_bytes": each.disk_bytes,
                "free_bytes": each.free_bytes,
            }
            for each in view.brokers
        ],
        "partitions": len(view.partitions),
        "moving": [str(each.at) for each in view.partitions if each.move is not None],
        "problems": view.problems(),
        "healthy": not view.problems(),
    }
