"""Records of `__cluster_metadata`, the log of everything the controller decided.

A record's value starts with three unsigned varints (frame version 1, key, version) and then holds one of these.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import (
    NO_BROKER_EPOCH,
    NO_LEADER_EPOCH,
    NO_PARTITION_EPOCH,
    Bool,
    BrokerEpoch,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    LeaderEpoch,
    PartitionEpoch,
    ProducerId,
    String,
    UInt16,
    Uuid,
)


class RegisterBrokerRecord(Data, key=0, versions="0-4", flexible="0+"):
    """A broker has registered, with its endpoints, features and log directories.

    v1   + in_controlled_shutdown
    v2   + is_migrating_zk_broker
    v3   + log_dirs
    v4   + cordoned_log_dirs
    """

    broker_id: Int32
    is_migrating_zk_broker: Bool = on("2+", False)
    incarnation_id: Uuid
    broker_epoch: BrokerEpoch

    class BrokerEndpoint(Struct):
        name: String
        host: String
        port: UInt16
        security_protocol: Int16

    end_points: list[BrokerEndpoint]

    class BrokerFeature(Struct):
        name: String
        min_supported_version: Int16
        max_supported_version: Int16

    features: list[BrokerFeature]
    rack: String | None
    fenced: Bool = True
    in_controlled_shutdown: Bool = on("1+", False)
    log_dirs: list[Uuid] = on("3+", [], tag=0)
    cordoned_log_dirs: list[Uuid] | None = on("4+", None, tag=1)


class UnregisterBrokerRecord(Data, key=1, versions="0", flexible="0+"):
    """A broker's registration is gone."""

    broker_id: Int32
    broker_epoch: BrokerEpoch


class TopicRecord(Data, key=2, versions="0", flexible="0+"):
    """A topic exists."""

    name: String
    topic_id: Uuid


class PartitionRecord(Data, key=3, versions="0-2", flexible="0+"):
    """A partition exists, with its replicas and leader.

    v1   + directories
    v2   + eligible_leader_replicas, last_known_elr
    """

    partition_id: Int32 = -1
    topic_id: Uuid
    replicas: list[Int32]
    isr: list[Int32]
    removing_replicas: list[Int32]
    adding_replicas: list[Int32]
    leader: Int32 = -1
    leader_recovery_state: Int8 = on("0+", 0, tag=0)
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH
    directories: list[Uuid] = on("1+", [])
    eligible_leader_replicas: list[Int32] | None = on("2+", None, tag=1)
    last_known_elr: list[Int32] | None = on("2+", None, tag=2)


class ConfigRecord(Data, key=4, versions="0", flexible="0+"):
    """A setting of a resource has a value, or (null) no longer has one."""

    resource_type: Int8
    resource_name: String
    name: String
    value: String | None


class PartitionChangeRecord(Data, key=5, versions="0-2", flexible="0+"):
    """Some facts about a partition changed; fields with their default value did not.

    v1   + directories
    v2   + eligible_leader_replicas, last_known_elr
    """

    partition_id: Int32 = -1
    topic_id: Uuid
    isr: list[Int32] | None = on("0+", None, tag=0)
    leader: Int32 = on("0+", -2, tag=1)
    replicas: list[Int32] | None = on("0+", None, tag=2)
    removing_replicas: list[Int32] | None = on("0+", None, tag=3)
    adding_replicas: list[Int32] | None = on("0+", None, tag=4)
    leader_recovery_state: Int8 = on("0+", -1, tag=5)
    directories: list[Uuid] | None = on("1+", None, tag=8)
    eligible_leader_replicas: list[Int32] | None = on("2+", None, tag=6)
    last_known_elr: list[Int32] | None = on("2+", None, tag=7)


class FenceBrokerRecord(Data, key=7, versions="0", flexible="0+"):
    """A broker may no longer lead (brokers of old metadata versions)."""

    id: Int32
    epoch: Int64


class UnfenceBrokerRecord(Data, key=8, versions="0", flexible="0+"):
    """A broker may lead again (brokers of old metadata versions)."""

    id: Int32
    epoch: Int64


class RemoveTopicRecord(Data, key=9, versions="0", flexible="0+"):
    """A topic is gone."""

    topic_id: Uuid


class DelegationTokenRecord(Data, key=10, versions="0", flexible="0+"):
    """A delegation token exists."""

    owner: String
    requester: String
    renewers: list[String]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: String


class UserScramCredentialRecord(Data, key=11, versions="0", flexible="0+"):
    """A user has a SCRAM credential."""

    name: String
    mechanism: Int8
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


class FeatureLevelRecord(Data, key=12, versions="0", flexible="0+"):
    """A feature is finalized at a level."""

    name: String
    feature_level: Int16


class ClientQuotaRecord(Data, key=14, versions="0", flexible="0+"):
    """A quota has a value, or no longer has one."""

    class EntityData(Struct):
        entity_type: String
        entity_name: String | None

    entity: list[EntityData]
    key: String
    value: Float64
    remove: Bool


class ProducerIdsRecord(Data, key=15, versions="0", flexible="0+"):
    """A block of producer ids was handed out."""

    broker_id: Int32
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    next_producer_id: ProducerId


class BrokerRegistrationChangeRecord(Data, key=17, versions="0-3", flexible="0+"):
    """Some facts about a broker changed: fenced, shutting down, log directories.

    v1   + in_controlled_shutdown
    v2   + log_dirs
    v3   + cordoned_log_dirs
    """

    broker_id: Int32
    broker_epoch: BrokerEpoch
    fenced: Int8 = on("0+", 0, tag=0)
    in_controlled_shutdown: Int8 = on("1+", 0, tag=1)
    log_dirs: list[Uuid] = on("2+", [], tag=2)
    cordoned_log_dirs: list[Uuid] | None = on("3+", None, tag=3)


class AccessControlEntryRecord(Data, key=18, versions="0", flexible="0+"):
    """An access control entry exists."""

    id: Uuid
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class RemoveAccessControlEntryRecord(Data, key=19, versions="0", flexible="0+"):
    """An access control entry is gone."""

    id: Uuid


class NoOpRecord(Data, key=20, versions="0", flexible="0+"):
    """Has no content; keeps the high watermark moving."""


class ZkMigrationStateRecord(Data, key=21, versions="0", flexible="0+"):
    """The state of a migration from ZooKeeper."""

    zk_migration_state: Int8


class RemoveUserScramCredentialRecord(Data, key=22, versions="0", flexible="0+"):
    """A SCRAM credential is gone."""

    name: String
    mechanism: Int8


class BeginTransactionRecord(Data, key=23, versions="0", flexible="0+"):
    """Begins a transaction: the records up to its end count together or not at all."""

    name: String | None = on("0+", None, tag=0)


class EndTransactionRecord(Data, key=24, versions="0", flexible="0+"):
    """Ends a transaction: the records since its beginning count."""


class AbortTransactionRecord(Data, key=25, versions="0", flexible="0+"):
    """Aborts a transaction: the records since its beginning do not count."""

    reason: String | None = on("0+", None, tag=0)


class RemoveDelegationTokenRecord(Data, key=26, versions="0", flexible="0+"):
    """A delegation token is gone."""

    token_id: String


class RegisterControllerRecord(Data, key=27, versions="0", flexible="0+"):
    """A controller has registered."""

    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Bool

    class ControllerEndpoint(Struct):
        name: String
        host: String
        port: UInt16
        security_protocol: Int16

    end_points: list[ControllerEndpoint]

    class ControllerFeature(Struct):
        name: String
        min_supported_version: Int16
        max_supported_version: Int16

    features: list[ControllerFeature]


class ClearElrRecord(Data, key=28, versions="0", flexible="0+"):
    """The eligible leader replicas of a topic, or of all topics, are cleared."""

    topic_name: String
