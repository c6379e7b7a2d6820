"""The metadata of the cluster and its controllers."""

from ottla.observe.metrics.declaration import Area

quorum = Area("Controllers and metadata", "The quorum as this node sees it; what the cluster consists of.")

ACTIVE_CONTROLLER = quorum.gauge(
    "kafka_controller_kafkacontroller_activecontrollercount",
    "1 if this node is the active controller; the sum over all nodes has to be 1.",
    mbean="kafka.controller:type=KafkaController,name=ActiveControllerCount",
)
OFFLINE_PARTITIONS = quorum.gauge(
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "Partitions of the cluster without a leader. Told by controllers.",
    mbean="kafka.controller:type=KafkaController,name=OfflinePartitionsCount",
)
PREFERRED_IMBALANCE = quorum.gauge(
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "Partitions of the cluster that another replica than the preferred one leads. Told by controllers.",
    mbean="kafka.controller:type=KafkaController,name=PreferredReplicaImbalanceCount",
)
TOPIC_COUNT = quorum.gauge(
    "kafka_controller_kafkacontroller_globaltopiccount",
    "Topics of the cluster. Told by controllers.",
    mbean="kafka.controller:type=KafkaController,name=GlobalTopicCount",
)
PARTITIONS_OF_CLUSTER = quorum.gauge(
    "kafka_controller_kafkacontroller_globalpartitioncount",
    "Partitions of the cluster. Told by controllers.",
    mbean="kafka.controller:type=KafkaController,name=GlobalPartitionCount",
)
ACTIVE_BROKERS = quorum.gauge(
    "kafka_controller_kafkacontroller_activebrokercount",
    "Brokers that are not fenced. Told by controllers.",
    mbean="kafka.controller:type=KafkaController,name=ActiveBrokerCount",
)
FENCED_BROKERS = quorum.gauge(
    "kafka_controller_kafkacontroller_fencedbrokercount",
    "Brokers that are registered and fenced: dead, starting or stopping. Told by controllers.",
    mbean="kafka.controller:type=KafkaController,name=FencedBrokerCount",
)
RAFT_STATE = quorum.gauge(
    "kafka_server_raftmetrics_current_state",
    "1; the label is what this node is in the quorum: leader, follower, observer, candidate and so on.",
    "current_state",
    mbean="kafka.server:type=raft-metrics (current-state)",
)
RAFT_LEADER = quorum.gauge(
    "kafka_server_raftmetrics_current_leader",
    "The node that leads the quorum; -1 if unknown.",
    mbean="kafka.server:type=raft-metrics (current-leader)",
)
RAFT_EPOCH = quorum.gauge(
    "kafka_server_raftmetrics_current_epoch",
    "The leader epoch of the quorum.",
    mbean="kafka.server:type=raft-metrics (current-epoch)",
)
RAFT_HIGH_WATERMARK = quorum.gauge(
    "kafka_server_raftmetrics_high_watermark",
    "The end of the committed metadata records.",
    mbean="kafka.server:type=raft-metrics (high-watermark)",
)
RAFT_END = quorum.gauge(
    "kafka_server_raftmetrics_log_end_offset",
    "The end of this node's copy of the metadata records.",
    mbean="kafka.server:type=raft-metrics (log-end-offset)",
)
RAFT_VOTERS = quorum.gauge(
    "kafka_server_raftmetrics_number_of_voters",
    "Voters of the quorum.",
    mbean="kafka.server:type=raft-metrics (number-of-voters)",
)
APPLIED_OFFSET = quorum.gauge(
    "kafka_server_brokermetadatametrics_last_applied_record_offset",
    "The offset of the last metadata record that this node has applied.",
    mbean="kafka.server:type=broker-metadata-metrics (last-applied-record-offset)",
)
QUORUM_LEADER = quorum.gauge("ottla_quorum_leader_id", "The node that leads the quorum; -1 if unknown.")
QUORUM_EPOCH = quorum.gauge("ottla_quorum_epoch", "The leader epoch of the quorum.")
QUORUM_VOTERS = quorum.gauge("ottla_quorum_voters", "Voters of the quorum.")
QUORUM_HIGH_WATERMARK = quorum.gauge("ottla_quorum_high_watermark", "The end of the committed metadata records.")
METADATA_END = quorum.gauge("ottla_metadata_log_end_offset", "The end of this node's copy of the metadata records.")
METADATA_LAG = quorum.gauge(
    "ottla_metadata_lag_records", "Committed metadata records that this node has not applied yet."
)
QUORUM_CHANGES = quorum.counter(
    "ottla_quorum_leader_changes_total", "How often the quorum got another leader, or lost it, while this node watched."
)
UNCLEAN = quorum.counter(
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "Partitions of the cluster that a replica began to lead that may lack records, while this node watched.",
    mbean="kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
)
