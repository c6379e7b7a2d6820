"""Records by topic, and what topics take of the disks."""

from ottla.observe.metrics.declaration import Area

_BROKER_TOPIC = "kafka.server:type=BrokerTopicMetrics,name={},topic=*"
_PARTITION = "kafka.cluster:type=Partition,name={},topic=*,partition=*"
_LOG = "kafka.log:type=Log,name={},topic=*,partition=*"

topics = Area(
    "Topics",
    "Of the topics with most traffic (`ottla.metrics.topics.max`) each is told; all others together are the topic "
    "`(other)`. Sizes and offsets are sums over the replicas on this node that are open; what Kafka tells of each "
    "partition is added up, too.",
)

MESSAGES_IN = topics.counter(
    "kafka_server_brokertopicmetrics_messagesin_total",
    "Records that producers wrote to partitions led here.",
    "topic",
    mbean=_BROKER_TOPIC.format("MessagesInPerSec"),
)
BYTES_IN = topics.counter(
    "kafka_server_brokertopicmetrics_bytesin_total",
    "Bytes of records that producers wrote to partitions led here.",
    "topic",
    unit="bytes",
    mbean=_BROKER_TOPIC.format("BytesInPerSec"),
)
BYTES_OUT = topics.counter(
    "kafka_server_brokertopicmetrics_bytesout_total",
    "Bytes of records that consumers and share groups read here.",
    "topic",
    unit="bytes",
    mbean=_BROKER_TOPIC.format("BytesOutPerSec"),
)
RECORDS_OUT = topics.counter(
    "ottla_topic_records_out_total",
    "Records that consumers and share groups read here, reckoned from the bytes and the mean size of the records of "
    "the partition: a node does not look into what it sends.",
    "topic",
)
TOTAL_PRODUCE = topics.counter(
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "Batches that producers sent to partitions led here, also refused ones.",
    "topic",
    mbean=_BROKER_TOPIC.format("TotalProduceRequestsPerSec"),
)
TOTAL_FETCH = topics.counter(
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "Partitions that consumers and share groups fetched records of here, also refused ones.",
    "topic",
    mbean=_BROKER_TOPIC.format("TotalFetchRequestsPerSec"),
)
FAILED_PRODUCE = topics.counter(
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "Batches that were refused, for whatever reason.",
    "topic",
    mbean=_BROKER_TOPIC.format("FailedProduceRequestsPerSec"),
)
FAILED_FETCH = topics.counter(
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "Partitions that a fetch of a consumer was refused, for whatever reason.",
    "topic",
    mbean=_BROKER_TOPIC.format("FailedFetchRequestsPerSec"),
)
LOG_SIZE = topics.gauge("kafka_log_log_size", "Size of the segments.", "topic", unit="bytes", mbean=_LOG.format("Size"))
LOG_SEGMENTS = topics.gauge(
    "kafka_log_log_numlogsegments", "Number of segments.", "topic", mbean=_LOG.format("NumLogSegments")
)
LOG_START = topics.gauge(
    "kafka_log_log_logstartoffset",
    "Log start offsets, added up.",
    "topic",
    mbean=_LOG.format("LogStartOffset"),
)
LOG_END = topics.gauge(
    "kafka_log_log_logendoffset", "Log end offsets, added up.", "topic", mbean=_LOG.format("LogEndOffset")
)
REPLICAS = topics.gauge(
    "kafka_cluster_partition_replicascount",
    "Replicas of the partitions led here.",
    "topic",
    mbean=_PARTITION.format("ReplicasCount"),
)
IN_SYNC = topics.gauge(
    "kafka_cluster_partition_insyncreplicascount",
    "In-sync replicas of the partitions led here.",
    "topic",
    mbean=_PARTITION.format("InSyncReplicasCount"),
)
PARTITIONS_UNDER_REPLICATED = topics.gauge(
    "kafka_cluster_partition_underreplicated",
    "Partitions led here with replicas that are not in sync, other than those being added.",
    "topic",
    mbean=_PARTITION.format("UnderReplicated"),
)
PARTITIONS_UNDER_MIN_ISR = topics.gauge(
    "kafka_cluster_partition_underminisr",
    "Partitions led here with fewer in-sync replicas than min.insync.replicas.",
    "topic",
    mbean=_PARTITION.format("UnderMinIsr"),
)
PARTITIONS_AT_MIN_ISR = topics.gauge(
    "kafka_cluster_partition_atminisr",
    "Partitions led here with exactly min.insync.replicas in-sync replicas.",
    "topic",
    mbean=_PARTITION.format("AtMinIsr"),
)
UNSTABLE = topics.gauge(
    "ottla_topic_unstable_records",
    "Records of partitions led here that are committed and held back from read_committed by open transactions.",
    "topic",
)
