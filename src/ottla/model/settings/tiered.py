"""Tiered storage. Older segments in an object store."""

from ottla.model.limits import INT64_MAX
from ottla.model.section import CLUSTER_WIDE, LOW, Section
from ottla.model.setting import NOT_YET
from ottla.model.validators import NonEmpty, at_least, between

tiered = Section("Tiered storage", "Older segments in an object store.", no_effect=NOT_YET)

REMOTE_LOG_STORAGE_SYSTEM_ENABLE = tiered.boolean(
    "remote.log.storage.system.enable", False, "Switch tiered storage on."
)
REMOTE_LOG_STORAGE_MANAGER_CLASS_NAME = tiered.optional_text(
    "remote.log.storage.manager.class.name", "Class that stores segments remotely.", valid=NonEmpty()
)
REMOTE_LOG_STORAGE_MANAGER_CLASS_PATH = tiered.optional_text(
    "remote.log.storage.manager.class.path", "Where that class is loaded from."
)
REMOTE_LOG_STORAGE_MANAGER_IMPL_PREFIX = tiered.text(
    "remote.log.storage.manager.impl.prefix",
    "rsm.config.",
    "Prefix of the settings that go to that class.",
    valid=NonEmpty(),
)
REMOTE_LOG_METADATA_MANAGER_CLASS_NAME = tiered.text(
    "remote.log.metadata.manager.class.name",
    "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
    "Class that keeps track of remote segments.",
    valid=NonEmpty(),
)
REMOTE_LOG_METADATA_MANAGER_CLASS_PATH = tiered.optional_text(
    "remote.log.metadata.manager.class.path", "Where that class is loaded from."
)
REMOTE_LOG_METADATA_MANAGER_IMPL_PREFIX = tiered.text(
    "remote.log.metadata.manager.impl.prefix",
    "rlmm.config.",
    "Prefix of the settings that go to that class.",
    valid=NonEmpty(),
)
REMOTE_LOG_METADATA_MANAGER_LISTENER_NAME = tiered.optional_text(
    "remote.log.metadata.manager.listener.name",
    "Listener over which the remote metadata is read and written.",
    valid=NonEmpty(),
)
REMOTE_LOG_METADATA_CUSTOM_METADATA_MAX_BYTES = tiered.int32(
    "remote.log.metadata.custom.metadata.max.bytes",
    128,
    "Largest custom metadata of a remote segment.",
    valid=at_least(0),
    importance=LOW,
)
REMOTE_LOG_INDEX_FILE_CACHE_TOTAL_SIZE_BYTES = tiered.int64(
    "remote.log.index.file.cache.total.size.bytes",
    1_073_741_824,
    "Disk space for indexes fetched from the remote store.",
    valid=at_least(1),
    importance=LOW,
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_INDEX_FILE_CACHE_TTL_MS = tiered.int64(
    "remote.log.index.file.cache.ttl.ms",
    900_000,
    "Time an unused fetched index is kept.",
    valid=at_least(-1),
    importance=LOW,
    internal=True,
)
REMOTE_LOG_MANAGER_THREAD_POOL_SIZE = tiered.int32(
    "remote.log.manager.thread.pool.size", 2, "Threads for remote work that has no pool of its own.", valid=at_least(1)
)
REMOTE_LOG_MANAGER_COPIER_THREAD_POOL_SIZE = tiered.int32(
    "remote.log.manager.copier.thread.pool.size",
    10,
    "Threads that copy segments out.",
    valid=at_least(1),
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_EXPIRATION_THREAD_POOL_SIZE = tiered.int32(
    "remote.log.manager.expiration.thread.pool.size",
    10,
    "Threads that remove expired remote segments.",
    valid=at_least(1),
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_FOLLOWER_THREAD_POOL_SIZE = tiered.int32(
    "remote.log.manager.follower.thread.pool.size",
    2,
    "Threads for remote work of followers.",
    valid=at_least(1),
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_TASK_INTERVAL_MS = tiered.int64(
    "remote.log.manager.task.interval.ms",
    30_000,
    "How often remote work is looked for.",
    valid=at_least(1),
    importance=LOW,
)
REMOTE_LOG_MANAGER_TASK_RETRY_BACKOFF_MS = tiered.int64(
    "remote.log.manager.task.retry.backoff.ms",
    500,
    "First wait before failed remote work is tried again.",
    valid=at_least(1),
    importance=LOW,
    internal=True,
)
REMOTE_LOG_MANAGER_TASK_RETRY_BACKOFF_MAX_MS = tiered.int64(
    "remote.log.manager.task.retry.backoff.max.ms",
    30_000,
    "Longest wait before failed remote work is tried again.",
    valid=at_least(1),
    importance=LOW,
    internal=True,
)
REMOTE_LOG_MANAGER_TASK_RETRY_JITTER = tiered.double(
    "remote.log.manager.task.retry.jitter",
    0.2,
    "Random part of those waits.",
    valid=between(0, 0.5),
    importance=LOW,
    internal=True,
)
REMOTE_LOG_READER_THREADS = tiered.int32(
    "remote.log.reader.threads", 10, "Threads that read from the remote store.", valid=at_least(1), dynamic=CLUSTER_WIDE
)
REMOTE_LOG_READER_MAX_PENDING_TASKS = tiered.int32(
    "remote.log.reader.max.pending.tasks", 100, "Remote reads that may wait.", valid=at_least(1)
)
REMOTE_LOG_MANAGER_COPY_MAX_BYTES_PER_SECOND = tiered.int64(
    "remote.log.manager.copy.max.bytes.per.second",
    INT64_MAX,
    "Bytes a second copied to the remote store.",
    valid=at_least(1),
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_NUM = tiered.int32(
    "remote.log.manager.copy.quota.window.num", 11, "Samples kept for that limit.", valid=at_least(1)
)
REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_SIZE_SECONDS = tiered.int32(
    "remote.log.manager.copy.quota.window.size.seconds", 1, "Length of each of those samples.", valid=at_least(1)
)
REMOTE_LOG_MANAGER_FETCH_MAX_BYTES_PER_SECOND = tiered.int64(
    "remote.log.manager.fetch.max.bytes.per.second",
    INT64_MAX,
    "Bytes a second read from the remote store.",
    valid=at_least(1),
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_NUM = tiered.int32(
    "remote.log.manager.fetch.quota.window.num", 11, "Samples kept for that limit.", valid=at_least(1)
)
REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_SIZE_SECONDS = tiered.int32(
    "remote.log.manager.fetch.quota.window.size.seconds", 1, "Length of each of those samples.", valid=at_least(1)
)
REMOTE_FETCH_MAX_WAIT_MS = tiered.int32(
    "remote.fetch.max.wait.ms",
    500,
    "How long a fetch waits for the remote store.",
    valid=at_least(1),
    dynamic=CLUSTER_WIDE,
)
REMOTE_LIST_OFFSETS_REQUEST_TIMEOUT_MS = tiered.int64(
    "remote.list.offsets.request.timeout.ms",
    30_000,
    "How long a ListOffsets waits for the remote store.",
    valid=at_least(1),
    dynamic=CLUSTER_WIDE,
)
LOG_LOCAL_RETENTION_MS = tiered.int64(
    "log.local.retention.ms",
    -2,
    "Time segments stay on the local disk; -2 means the whole retention time.",
    valid=at_least(-2),
    dynamic=CLUSTER_WIDE,
)
LOG_LOCAL_RETENTION_BYTES = tiered.int64(
    "log.local.retention.bytes",
    -2,
    "Size kept on the local disk; -2 means the whole retention size.",
    valid=at_least(-2),
    dynamic=CLUSTER_WIDE,
)
