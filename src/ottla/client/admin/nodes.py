"""The nodes of a cluster: brokers, the APIs they serve, their log directories, feature levels;
unregistering a broker.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ottla.client.admin.voters import QuorumState, VoterAdmin
from ottla.client.checks import checked_name, checked_number
from ottla.client.cluster import Cluster
from ottla.client.connection import VersionRange
from ottla.client.errors import check, error_code
from ottla.client.metadata import AdvertisedBroker
from ottla.client.outcomes import Outcomes, outcomes_of
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.version import VERSION
from ottla.wire.api import OWN_CLIENT
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from ottla.wire.messages.cluster.update_features import UpdateFeaturesRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

_BROKER = "the id of a broker"


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The cluster as one of its brokers sees it."""

    cluster_id: str
    controller_id: int
    brokers: tuple[AdvertisedBroker, ...]


class Feature(NamedTuple):
    """A feature's range on one broker, and the level finalised for the cluster (None: not finalised)."""

    name: str
    min_version: int
    max_version: int
    finalized: int | None


class Upgrade(IntEnum):
    """The direction in which feature levels may change; an unsafe downgrade may lose metadata."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class ReplicaSize(NamedTuple):
    """The size of one replica on disk, and the bytes read from it since its broker opened it (-1: the broker does not
    say).
    """

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool
    sent_bytes: int = -1


class TenantRates(NamedTuple):
    """Bytes per second of a tenant's topics on one broker."""

    produced: float
    consumed: float


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of one broker."""

    node_id: int
    path: str
    error: ErrorCode
    replicas: tuple[ReplicaSize, ...]
    total_bytes: int
    usable_bytes: int


class NodeAdmin:
    """Operations on the nodes of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(self, *, fenced: bool = False) -> ClusterDescription:
        """Return the brokers, the controller and the id of the cluster; with `fenced`, also registered brokers that
        are fenced.

        In a KRaft cluster, `controller_id` is any broker that forwards requests to the active controller. `quorum`
        returns the controller that leads.
        """
        request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=fenced)
        answer = await self._cluster.call(request, error_of=lambda each: each.error_code)
        check(answer.error_code, answer.error_message)
        brokers = [
            AdvertisedBroker(each.broker_id, each.host, each.port, each.rack, each.is_fenced) for each in answer.brokers
        ]
        return ClusterDescription(answer.cluster_id, answer.controller_id, tuple(sorted(brokers)))

    async def api_versions(self, node_id: int | None = None) -> dict[int, VersionRange]:
        """Return the APIs that a broker (default: any broker) serves, by API key."""
        if node_id is not None:
            checked_number(node_id, _BROKER)
        connection = await (self._cluster.any_connection() if node_id is None else self._cluster.connection(node_id))
        return dict(sorted(connection.versions.items()))

    async def features(self, node_id: int | None = None) -> list[Feature]:
        """Return the features that a broker supports and the levels that the cluster has finalised."""
        request = ApiVersionsRequest(client_software_name=OWN_CLIENT, client_software_version=VERSION)
        answer = await self._cluster.call(request, node_id=node_id)
        check(answer.error_code)
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        found = [
            Feature(each.name, each.min_version, each.max_version, levels.get(each.name))
            for each in answer.supported_features
        ]
        return sorted(found)

    async def log_dirs(self, node_ids: Iterable[int] | None = None) -> list[LogDir]:
        """Return the log directories of the brokers (default: all) with every replica's size and the bytes read from
        it.
        """
        return [each for dirs in (await self.log_dirs_each(node_ids)).all().values() for each in dirs]

    async def log_dirs_each(
        self, node_ids: Iterable[int] | None = None, topics: Mapping[str, Iterable[int]] | None = None
    ) -> Outcomes[int, list[LogDir]]:
        """Return the log directories by broker; a broker that cannot be reached has a failed outcome. With `topics`,
        only the replicas of these partitions are asked for.
        """
        if node_ids is None:
            node_ids = [broker.node_id for broker in (await self.describe()).brokers]
            await self._cluster.refresh()
        asked = [checked_number(node_id, _BROKER) for node_id in node_ids]
        wanted = None if topics is None else {checked_name(name, "topic"): [*parts] for name, parts in topics.items()}
        return await outcomes_of({node_id: self._log_dirs_of(node_id, wanted) for node_id in asked})

    async def tenant_rates_each(self, tenant: str) -> Outcomes[int, TenantRates | None]:
        """Return by broker the bytes per second that producers and consumers of a tenant's topics send to it and get
        from it; None from a broker that does not measure them, such as a real Kafka.
        """
        brokers = [each.node_id for each in (await self.describe()).brokers]
        await self._cluster.refresh()
        return await outcomes_of({node_id: self._tenant_rates_of(node_id, tenant) for node_id in brokers})

    async def _tenant_rates_of(self, node_id: int, tenant: str) -> TenantRates | None:
        request = DescribeLogDirsRequest(topics=[], rates_of_tenant=checked_name(tenant, "a tenant"))
        answer = await self._cluster.call(request, node_id=node_id)
        check(answer.error_code)
        is_told = answer.produced_byte_rate >= 0 and answer.consumed_byte_rate >= 0
        return TenantRates(answer.produced_byte_rate, answer.consumed_byte_rate) if is_told else None

    async def _log_dirs_of(self, node_id: int, wanted: Mapping[str, list[int]] | None) -> list[LogDir]:
        topic = DescribeLogDirsRequest.DescribableLogDirTopic
        topics = None if wanted is None else [topic(topic=name, partitions=parts) for name, parts in wanted.items()]
        request = DescribeLogDirsRequest(topics=topics, with_sent_bytes=True)
        answer = await self._cluster.call(request, node_id=node_id)
        check(answer.error_code)
        return [_log_dir(node_id, each) for each in answer.results]

    async def quorum(self) -> QuorumState:
        """Return the state of the metadata quorum."""
        return await VoterAdmin(self._cluster).quorum()

    async def unregister(self, node_id: int) -> None:
        """Remove a broker that will not come back from the cluster. It must be down and hold no replicas (Kafka does
        not check).
        """
        request = UnregisterBrokerRequest(broker_id=checked_number(node_id, _BROKER))
        answer = await self._cluster.call(request, error_of=lambda each: each.error_code)
        check(answer.error_code, answer.error_message)

    async def update_features(
        self, levels: Mapping[str, int], kind: Upgrade = Upgrade.UPGRADE, *, validate_only: bool = False
    ) -> None:
        """Finalise other feature levels for the whole cluster, all or none; level 0 removes a feature."""
        request = UpdateFeaturesRequest(
            timeout_ms=self._cluster.options.request_timeout_ms,
            feature_updates=[
                UpdateFeaturesRequest.FeatureUpdateKey(
                    feature=checked_name(name, "a feature"),
                    max_version_level=checked_number(
                        level, "the level of a feature", at_least=0, at_most=limits.INT16_MAX
                    ),
                    allow_downgrade=kind != Upgrade.UPGRADE,
                    upgrade_type=int(kind),
                )
                for name, level in levels.items()
            ],
            validate_only=validate_only,
        )
        answer = await self._cluster.call(request, error_of=lambda each: each.error_code)
        for each in answer.results:
            check(each.error_code, each.error_message)
        check(answer.error_code, answer.error_message)


def _log_dir(node_id: int, found: DescribeLogDirsResponse.Result) -> LogDir:
    replicas = sorted(
        ReplicaSize(
            topic.name,
            each.partition_index,
            each.partition_size,
            each.offset_lag,
            each.is_future_key,
            each.sent_bytes,
        )
        for topic in found.topics
        for each in topic.partitions
    )
    error = error_code(found.error_code)
    return LogDir(node_id, found.log_dir, error, tuple(replicas), found.total_bytes, found.usable_bytes)
