"""Node. The identity and roles of this node, its automatic actions, and its policies."""

from ottla.model.limits import DESCRIBE_PARTITIONS_MAX, FETCH_BYTES_MAX, FETCH_SESSIONS_MAX, INT64_MAX
from ottla.model.section import CLUSTER_WIDE, HIGH, LOW, Section
from ottla.model.setting import NOT_YET, REQUIRED
from ottla.model.validators import Items, at_least

node = Section("Node", "Who this node is, what it does by itself, and the policies it asks.")

PROCESS_ROLES = node.items(
    "process.roles",
    REQUIRED,
    "What this node is: broker, controller or both.",
    valid=Items(("broker", "controller"), empty=False),
    importance=HIGH,
)
NODE_ID = node.int32(
    "node.id", REQUIRED, "Number of this node, unique in the cluster.", valid=at_least(0), importance=HIGH
)
BROKER_ID = node.int32("broker.id", -1, "Older name for node.id; follows it when only that is given.", importance=HIGH)
BROKER_RACK = node.optional_text(
    "broker.rack", "Rack (or zone) of this broker, used to spread replicas and to fetch from near ones."
)
AUTO_CREATE_TOPICS_ENABLE = node.boolean(
    "auto.create.topics.enable", True, "Create a topic when a client asks for one that does not exist.", importance=HIGH
)
DELETE_TOPIC_ENABLE = node.boolean("delete.topic.enable", True, "Allow clients to delete topics.", importance=HIGH)
NUM_PARTITIONS = node.int32(
    "num.partitions", 1, "Partitions of a topic whose creator does not say how many.", valid=at_least(1)
)
DEFAULT_REPLICATION_FACTOR = node.int32(
    "default.replication.factor", 1, "Replicas of a topic whose creator does not say how many."
)
NUM_IO_THREADS = node.int32(
    "num.io.threads",
    8,
    "Threads that work on requests; one event loop does it here.",
    valid=at_least(1),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
BACKGROUND_THREADS = node.int32(
    "background.threads",
    10,
    "Threads for work behind the scenes.",
    valid=at_least(1),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
REQUEST_TIMEOUT_MS = node.int32(
    "request.timeout.ms",
    30_000,
    "How long the broker waits for an answer to a request of its own.",
    importance=HIGH,
    no_effect=NOT_YET,
)
CONTROLLED_SHUTDOWN_ENABLE = node.boolean("controlled.shutdown.enable", True, "Hand leadership over before stopping.")
MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS = node.int32(
    "max.incremental.fetch.session.cache.slots",
    FETCH_SESSIONS_MAX,
    "Incremental fetch sessions kept at the same time.",
    valid=at_least(0),
)
FETCH_MAX_BYTES = node.int32(
    "fetch.max.bytes",
    FETCH_BYTES_MAX,
    "Most bytes that one fetch answer carries, whatever the client asks for.",
    valid=at_least(1_024),
)
MAX_REQUEST_PARTITION_SIZE_LIMIT = node.int32(
    "max.request.partition.size.limit",
    DESCRIBE_PARTITIONS_MAX,
    "Most partitions that one DescribeTopicPartitions answer lists.",
    valid=at_least(1),
)
FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS = node.int32(
    "fetch.purgatory.purge.interval.requests",
    1_000,
    "Requests after which finished fetch waits are swept out.",
    no_effect=NOT_YET,
)
PRODUCER_PURGATORY_PURGE_INTERVAL_REQUESTS = node.int32(
    "producer.purgatory.purge.interval.requests",
    1_000,
    "Requests after which finished produce waits are swept out.",
    no_effect=NOT_YET,
)
DELETE_RECORDS_PURGATORY_PURGE_INTERVAL_REQUESTS = node.int32(
    "delete.records.purgatory.purge.interval.requests",
    1,
    "Requests after which finished DeleteRecords waits are swept out.",
    no_effect=NOT_YET,
)
CREATE_TOPIC_POLICY_CLASS_NAME = node.class_name(
    "create.topic.policy.class.name",
    None,
    "Class that may refuse the creation of a topic.",
    importance=LOW,
    no_effect=NOT_YET,
)
ALTER_CONFIG_POLICY_CLASS_NAME = node.class_name(
    "alter.config.policy.class.name",
    None,
    "Class that may refuse a change of configuration.",
    importance=LOW,
    no_effect=NOT_YET,
)
CONFIG_PROVIDERS = node.items(
    "config.providers",
    (),
    "Names of the providers that replace ${...} in values.",
    valid=Items(),
    importance=LOW,
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
SERVER_MAX_STARTUP_TIME_MS = node.int64(
    "server.max.startup.time.ms",
    INT64_MAX,
    "How long starting may take before the node gives up.",
    valid=at_least(0),
    internal=True,
    no_effect=NOT_YET,
)
UNSTABLE_API_VERSIONS_ENABLE = node.boolean(
    "unstable.api.versions.enable",
    False,
    "Serve API versions that are not final.",
    importance=HIGH,
    internal=True,
    no_effect=NOT_YET,
)
UNSTABLE_FEATURE_VERSIONS_ENABLE = node.boolean(
    "unstable.feature.versions.enable",
    False,
    "Allow feature levels that are not final.",
    importance=HIGH,
    internal=True,
    no_effect=NOT_YET,
)
