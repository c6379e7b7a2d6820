"""Ottla's own. Settings that Kafka does not have; all names begin with `ottla.`, so that none of Kafka's can clash."""

from ottla.model.limits import (
    METRICS_GROUPS,
    METRICS_TOPICS,
    OPEN_FILES_MAX,
    OTEL_INTERVAL_MS,
    OTEL_INTERVAL_MS_MIN,
    STALL_MS,
    TELEMETRY_CLIENTS,
    WORKER_THREADS_MAX,
)
from ottla.model.section import CLUSTER_WIDE, HIGH, Section
from ottla.model.validators import Items, NonEmpty, at_least, between

own = Section("Ottla's own", "What Kafka does not have.")

OTTLA_AUDIT_TO = own.items(
    "ottla.audit.to",
    (),
    "Where the audit log is written: `file`, `topic` (`__ottla_audit`) or both; empty turns it off.",
    valid=Items(("file", "topic")),
)
OTTLA_AUDIT_FILE = own.optional_text("ottla.audit.file", "File of the audit log, one JSON object per line.")
OTTLA_AUDIT_EVENTS = own.items(
    "ottla.audit.events",
    ("refused", "changes", "authentication"),
    "What the audit log has: what was refused, allowed changes, authentications, or all that is decided.",
    valid=Items(("refused", "changes", "authentication", "all"), empty=False),
)
OTTLA_CLUSTER_ID = own.optional_text(
    "ottla.cluster.id",
    "The cluster that a node with empty directories joins. Without it nodes that name the same voters are one cluster.",
)
OTTLA_FSYNC_BEFORE_ACK = own.boolean(
    "ottla.fsync.before.ack",
    False,
    "Sync a record to disk before it is acknowledged; many appends share one sync.",
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
OTTLA_METRICS_LISTENER = own.optional_text(
    "ottla.metrics.listener",
    "Address for `/metrics`, `/healthz` and `/readyz`: HOST:PORT on loopback, or HTTPS://HOST:PORT, with TLS and "
    "users.",
)
OTTLA_METRICS_CLIENTS_MAX = own.int32(
    "ottla.metrics.clients.max",
    TELEMETRY_CLIENTS,
    "Client instances whose own metrics this node tells; what others push is left out.",
    valid=at_least(0),
)
OTTLA_METRICS_GROUPS_MAX = own.int32(
    "ottla.metrics.groups.max",
    METRICS_GROUPS,
    "Groups that metrics tell one by one, those with most lag; all others are added up.",
    valid=at_least(0),
)
OTTLA_METRICS_GROUPS_INCLUDE = own.items(
    "ottla.metrics.groups.include",
    ("*",),
    "Groups that metrics may tell one by one, by patterns of their names, in which `*` stands for anything.",
)
OTTLA_METRICS_GROUPS_EXCLUDE = own.items(
    "ottla.metrics.groups.exclude",
    (),
    "Groups that metrics never tell one by one, by patterns of their names.",
)
OTTLA_METRICS_TOPICS_MAX = own.int32(
    "ottla.metrics.topics.max",
    METRICS_TOPICS,
    "Topics that metrics tell one by one, those with most traffic; all others are added up.",
    valid=at_least(0),
)
OTTLA_METRICS_TOPICS_INCLUDE = own.items(
    "ottla.metrics.topics.include",
    ("*",),
    "Topics that metrics may tell one by one, by patterns of their names, in which `*` stands for anything.",
)
OTTLA_METRICS_TOPICS_EXCLUDE = own.items(
    "ottla.metrics.topics.exclude",
    (),
    "Topics that metrics never tell one by one, by patterns of their names.",
)
OTTLA_OPEN_FILES_MAX = own.int32(
    "ottla.open.files.max", OPEN_FILES_MAX, "Files kept open over all partitions.", valid=at_least(64)
)
OTTLA_OTEL_ENDPOINT = own.optional_text(
    "ottla.otel.endpoint",
    "Where OTLP over HTTP goes to: http://HOST:4318 or https://HOST:4318; without it nothing is pushed.",
)
OTTLA_OTEL_HEADERS = own.password(
    "ottla.otel.headers",
    "Headers of each push, as in OTEL_EXPORTER_OTLP_HEADERS: `name=value,…`, values percent-encoded.",
)
OTTLA_OTEL_CA_FILE = own.optional_text(
    "ottla.otel.ca.file",
    "PEM file of the authorities of an https endpoint; without it those of the operating system.",
)
OTTLA_OTEL_INTERVAL_MS = own.int32(
    "ottla.otel.interval.ms",
    OTEL_INTERVAL_MS,
    "How often metrics are pushed.",
    valid=at_least(OTEL_INTERVAL_MS_MIN),
)
OTTLA_OTEL_SERVICE_NAME = own.text(
    "ottla.otel.service.name",
    "ottla",
    "The name of this cluster in pushes (`service.name`, Prometheus' job); alerts want it to begin with `ottla`.",
    valid=NonEmpty(),
)
OTTLA_OTEL_TRACES_RATIO = own.double(
    "ottla.otel.traces.ratio",
    0.0,
    "Share of the requests that begin a trace, from 0 to 1; at 0 this node records no spans.",
    valid=between(0, 1),
)
OTTLA_SPARK_GROUPS_ENABLE = own.boolean(
    "ottla.spark.groups.enable",
    True,
    "Show queries of Spark's own Kafka connector as consumer groups, by what their executors fetch.",
    dynamic=CLUSTER_WIDE,
)
OTTLA_SLOW_REQUEST_MS = own.int32(
    "ottla.slow.request.ms",
    0,
    "Requests that took longer are logged, with their client and where the time went; 0 turns it off.",
    valid=at_least(0),
)
OTTLA_STALL_LIMIT_MS = own.int32(
    "ottla.stall.limit.ms",
    STALL_MS,
    "What one callback may take of the event loop before it is logged and counted as a stall; 0 turns the watch off.",
    valid=at_least(0),
)
OTTLA_WORKER_THREADS = own.int32(
    "ottla.worker.threads",
    WORKER_THREADS_MAX,
    "Threads for work that would block the event loop: compaction, looks into batches, checkpoints.",
    valid=between(1, 64),
)
