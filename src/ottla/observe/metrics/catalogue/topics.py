"""Records by topic, and what topics take of the disks."""

from ottla.observe.metrics.declaration import Area

_BROKER_TOPIC = "kafka.server:type=BrokerTopicMetrics,name={},topic=*"
_LOG = "kafka.log:type=Log,name={},topic=*,partition=*"

topics = Area(
    "Topics",
    "Of the topics with most traffic (`ottla.metrics.topics.max`) each is told; all others together are the topic "
    "`(other)`. Sizes and offsets are sums over the replicas on this node that are open.",
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
UNSTABLE = topics.gauge(
    "ottla_topic_unstable_records",
    "Records of partitions led here that are committed and held back from read_committed by open transactions.",
    "topic",
)
