"""The nodes of a cluster: who is there, what they serve, their disks, the metadata quorum, feature levels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.connection import VersionRange
from ottla.client.errors import check, error_code
from ottla.client.metadata import Broker
from ottla.model.errors import ErrorCode
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse, ReplicaState


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The cluster as one of its brokers sees it."""

    cluster_id: str
    controller_id: int
    brokers: tuple[Broker, ...]


class Feature(NamedTuple):
    """A feature's range on one broker, and the level finalised for the cluster (None: not finalised)."""

    name: str
    min_version: int
    max_version: int
    finalized: int | None


class ReplicaSize(NamedTuple):
    """What one replica takes on a disk."""

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of one broker."""

    node_id: int
    path: str
    error: ErrorCode
    replicas: tuple[ReplicaSize, ...]
    total_bytes: int
    usable_bytes: int


class QuorumReplica(NamedTuple):
    """A voter or observer of the metadata quorum."""

    node_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


@dataclass(frozen=True, slots=True)
class Quorum:
    """The state of the metadata quorum."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


class Nodes:
    """What can be asked of the nodes themselves."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(self) -> ClusterDescription:
        """Brokers, controller and id of the cluster."""
        request = DescribeClusterRequest(include_cluster_authorized_operations=False)
        answer = await self._cluster.call(request, DescribeClusterResponse, error_of=lambda each: each.error_code)
        check(answer.error_code, answer.error_message)
        brokers = [Broker(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers]
        return ClusterDescription(answer.cluster_id, answer.controller_id, tuple(sorted(brokers)))

    async def api_versions(self, node_id: int | None = None) -> dict[int, VersionRange]:
        """The APIs that a broker (any, unless told) serves, by key."""
        connection = await (self._cluster.any_connection() if node_id is None else self._cluster.connection(node_id))
        return dict(sorted(connection.versions.items()))

    async def features(self, node_id: int | None = None) -> list[Feature]:
        """The features that a broker supports and the levels that the cluster has finalised."""
        connection = await (self._cluster.any_connection() if node_id is None else self._cluster.connection(node_id))
        answer = connection.api_versions
        assert answer is not None
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        found = [
            Feature(each.name, each.min_version, each.max_version, levels.get(each.name))
            for each in answer.supported_features
        ]
        return sorted(found)

    async def log_dirs(self, node_ids: Iterable[int] | None = None) -> list[LogDir]:
        """The log directories of the brokers (all, unless told) with every replica's size."""
        if node_ids is None:
            node_ids = [broker.node_id for broker in (await self.describe()).brokers]
            await self._cluster.refresh()
        found: list[LogDir] = []
        for node_id in node_ids:
            request = DescribeLogDirsRequest(topics=None)
            answer = await self._cluster.call(request, DescribeLogDirsResponse, node_id=node_id)
            check(answer.error_code)
            found.extend(_log_dir(node_id, each) for each in answer.results)
        return found

    async def quorum(self) -> Quorum:
        """The metadata quorum."""
        kind = DescribeQuorumRequest.TopicData
        wanted = kind(topic_name=CLUSTER_METADATA_TOPIC, partitions=[kind.PartitionData(partition_index=0)])
        request = DescribeQuorumRequest(topics=[wanted])
        answer = await self._cluster.call(request, DescribeQuorumResponse, error_of=lambda each: each.error_code)
        check(answer.error_code, answer.error_message)
        found = answer.topics[0].partitions[0]
        check(found.error_code, found.error_message)
        return Quorum(
            leader_id=found.leader_id,
            leader_epoch=found.leader_epoch,
            high_watermark=found.high_watermark,
            voters=tuple(_quorum_replica(each) for each in found.current_voters),
            observers=tuple(_quorum_replica(each) for each in found.observers),
        )


def _quorum_replica(replica: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        replica.replica_id,
        replica.replica_directory_id,
        replica.log_end_offset,
        replica.last_fetch_timestamp,
        replica.last_caught_up_timestamp,
    )


def _log_dir(node_id: int, found: DescribeLogDirsResponse.Result) -> LogDir:
    replicas = sorted(
        ReplicaSize(topic.name, each.partition_index, each.partition_size, each.offset_lag, each.is_future_key)
        for topic in found.topics
        for each in topic.partitions
    )
    error = error_code(found.error_code)
    return LogDir(node_id, found.log_dir, error, tuple(replicas), found.total_bytes, found.usable_bytes)
