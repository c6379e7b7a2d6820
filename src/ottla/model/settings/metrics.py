"""Metrics and quotas."""

from ottla.model.section import CLUSTER_WIDE, LOW, Section
from ottla.model.setting import NOT_YET
from ottla.model.validators import Items, at_least

metrics = Section("Metrics and quotas", "What is measured and what is rationed.")

METRIC_REPORTERS = metrics.items(
    "metric.reporters",
    ("org.apache.kafka.common.metrics.JmxReporter",),
    "Classes that report metrics.",
    valid=Items(),
    importance=LOW,
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
METRICS_NUM_SAMPLES = metrics.int32(
    "metrics.num.samples",
    2,
    "Samples a metric is computed from.",
    valid=at_least(1),
    importance=LOW,
    no_effect=NOT_YET,
)
METRICS_SAMPLE_WINDOW_MS = metrics.int64(
    "metrics.sample.window.ms",
    30_000,
    "Length of a sample.",
    valid=at_least(1),
    importance=LOW,
    no_effect=NOT_YET,
)
METRICS_RECORDING_LEVEL = metrics.text(
    "metrics.recording.level",
    "INFO",
    "How fine metrics are recorded.",
    importance=LOW,
    no_effect=NOT_YET,
)
KAFKA_METRICS_REPORTERS = metrics.items(
    "kafka.metrics.reporters",
    (),
    "Classes that report the older kind of metrics.",
    valid=Items(),
    importance=LOW,
    no_effect=NOT_YET,
)
KAFKA_METRICS_POLLING_INTERVAL_SECS = metrics.int32(
    "kafka.metrics.polling.interval.secs",
    10,
    "How often those are polled.",
    valid=at_least(1),
    importance=LOW,
    no_effect=NOT_YET,
)
TELEMETRY_MAX_BYTES = metrics.int32(
    "telemetry.max.bytes",
    1_048_576,
    "Largest metrics push of a client, compressed.",
    valid=at_least(1),
    importance=LOW,
)
QUOTA_WINDOW_NUM = metrics.int32(
    "quota.window.num",
    11,
    "Samples kept for client quotas.",
    valid=at_least(1),
    importance=LOW,
)
QUOTA_WINDOW_SIZE_SECONDS = metrics.int32(
    "quota.window.size.seconds",
    1,
    "Length of each of those samples.",
    valid=at_least(1),
    importance=LOW,
)
REPLICATION_QUOTA_WINDOW_NUM = metrics.int32(
    "replication.quota.window.num", 11, "Samples kept for replication quotas.", valid=at_least(1), importance=LOW
)
REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = metrics.int32(
    "replication.quota.window.size.seconds", 1, "Length of each of those samples.", valid=at_least(1), importance=LOW
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM = metrics.int32(
    "alter.log.dirs.replication.quota.window.num",
    11,
    "Samples kept for the quota on moves between directories.",
    valid=at_least(1),
    importance=LOW,
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = metrics.int32(
    "alter.log.dirs.replication.quota.window.size.seconds",
    1,
    "Length of each of those samples.",
    valid=at_least(1),
    importance=LOW,
)
CONTROLLER_QUOTA_WINDOW_NUM = metrics.int32(
    "controller.quota.window.num",
    11,
    "Samples kept for the quota on changes of metadata.",
    valid=at_least(1),
    importance=LOW,
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS = metrics.int32(
    "controller.quota.window.size.seconds",
    1,
    "Length of each of those samples.",
    valid=at_least(1),
    importance=LOW,
)
CLIENT_QUOTA_CALLBACK_CLASS = metrics.class_name(
    "client.quota.callback.class",
    None,
    "Class that decides about client quotas.",
    importance=LOW,
    no_effect=NOT_YET,
)
