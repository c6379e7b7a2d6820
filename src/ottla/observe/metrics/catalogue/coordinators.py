"""Groups and transactions that this node coordinates."""

from ottla.observe.metrics.declaration import Area

coordinators = Area("Groups and transactions", "Those that this node coordinates.")

GROUPS = coordinators.gauge("ottla_groups", "Groups by kind and state.", "kind", "state")
ALL_GROUPS = coordinators.gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    "Groups of all kinds.",
    mbean="kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups",
)
_MANAGER = "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups{}"
STABLE_GROUPS = coordinators.gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupsstable",
    "Groups whose members have their partitions.",
    mbean=_MANAGER.format("Stable"),
)
EMPTY_GROUPS = coordinators.gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupsempty",
    "Groups without members.",
    mbean=_MANAGER.format("Empty"),
)
PREPARING_GROUPS = coordinators.gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance",
    "Groups that begin to rebalance; of new kinds those that compute assignments, or cannot yet.",
    mbean=_MANAGER.format("PreparingRebalance"),
)
COMPLETING_GROUPS = coordinators.gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance",
    "Groups whose members are given their partitions.",
    mbean=_MANAGER.format("CompletingRebalance"),
)
DEAD_GROUPS = coordinators.gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupsdead",
    "Groups that are being removed.",
    mbean=_MANAGER.format("Dead"),
)
GROUP_MEMBERS = coordinators.gauge("ottla_group_members", "Members of groups, by kind.", "kind")
REBALANCES = coordinators.counter("ottla_group_rebalances_total", "Rebalances that have begun, of groups of all kinds.")
TRANSACTIONS = coordinators.gauge("ottla_transactions", "Transactional ids by the state of their transaction.", "state")
OLDEST_TRANSACTION = coordinators.gauge(
    "ottla_transaction_oldest_seconds", "Age of the oldest transaction that is open; 0 if none is.", unit="seconds"
)
