"""Partitions as their leaders, and the active controller, see them."""

from ottla.observe.metrics.declaration import Area

replica_manager = Area("Partitions of this node", "The replicas that this node holds; those of partitions it leads.")

PARTITION_COUNT = replica_manager.gauge(
    "kafka_server_replicamanager_partitioncount",
    "Replicas on this node.",
    mbean="kafka.server:type=ReplicaManager,name=PartitionCount",
)
LEADER_COUNT = replica_manager.gauge(
    "kafka_server_replicamanager_leadercount",
    "Partitions that this node leads.",
    mbean="kafka.server:type=ReplicaManager,name=LeaderCount",
)
UNDER_REPLICATED = replica_manager.gauge(
    "kafka_server_replicamanager_underreplicatedpartitions",
    "Partitions led here with replicas that are not in sync, other than those being added.",
    mbean="kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions",
)
UNDER_MIN_ISR = replica_manager.gauge(
    "kafka_server_replicamanager_underminisrpartitioncount",
    "Partitions led here with fewer in-sync replicas than min.insync.replicas: acks=all is refused.",
    mbean="kafka.server:type=ReplicaManager,name=UnderMinIsrPartitionCount",
)
AT_MIN_ISR = replica_manager.gauge(
    "kafka_server_replicamanager_atminisrpartitioncount",
    "Partitions led here with exactly min.insync.replicas in-sync replicas: one less, and acks=all is refused.",
    mbean="kafka.server:type=ReplicaManager,name=AtMinIsrPartitionCount",
)
OFFLINE_REPLICAS = replica_manager.gauge(
    "kafka_server_replicamanager_offlinereplicacount",
    "Replicas on this node whose data directory has failed.",
    mbean="kafka.server:type=ReplicaManager,name=OfflineReplicaCount",
)
REASSIGNING = replica_manager.gauge(
    "kafka_server_replicamanager_reassigningpartitions",
    "Partitions led here that are being reassigned.",
    mbean="kafka.server:type=ReplicaManager,name=ReassigningPartitions",
)
MAX_LAG = replica_manager.gauge(
    "kafka_server_replicafetchermanager_maxlag",
    "Records that the follower here that is furthest behind lacks, as its leader told it last.",
    mbean="kafka.server:type=ReplicaFetcherManager,name=MaxLag,clientId=Replica",
)
ISR_SHRINKS = replica_manager.counter(
    "kafka_server_replicamanager_isrshrinks_total",
    "How often a replica left the in-sync replicas of a partition led here.",
    mbean="kafka.server:type=ReplicaManager,name=IsrShrinksPerSec",
)
ISR_EXPANDS = replica_manager.counter(
    "kafka_server_replicamanager_isrexpands_total",
    "How often a replica joined the in-sync replicas of a partition led here.",
    mbean="kafka.server:type=ReplicaManager,name=IsrExpandsPerSec",
)
LEADER_CHANGES = replica_manager.counter(
    "ottla_partition_leader_changes_total",
    "Partitions of the cluster that got another leader, or lost theirs, while this node watched.",
)
OFFLINE_DIRECTORIES = replica_manager.gauge(
    "kafka_log_logmanager_offlinelogdirectorycount",
    "Data directories of this node that have failed.",
    mbean="kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
)
