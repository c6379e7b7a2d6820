"""Controller and quorum. The metadata log and the nodes that vote on it."""

from ottla.model.section import HIGH, LOW, Section
from ottla.model.setting import NOT_YET, REQUIRED
from ottla.model.validators import HostPorts, Items, Voters, at_least

controller = Section("Controller and quorum", "The metadata log and the nodes that vote on it.")

CONTROLLER_LISTENER_NAMES = controller.items(
    "controller.listener.names", REQUIRED, "Listeners of the controllers.", valid=Items(empty=False), importance=HIGH
)
CONTROLLER_QUORUM_VOTERS = controller.items(
    "controller.quorum.voters", (), "The fixed set of voters, as id@host:port,...", valid=Voters(), importance=HIGH
)
CONTROLLER_QUORUM_BOOTSTRAP_SERVERS = controller.items(
    "controller.quorum.bootstrap.servers",
    (),
    "Controllers to find the quorum with, as host:port,...",
    valid=HostPorts(),
    importance=HIGH,
)
CONTROLLER_QUORUM_AUTO_JOIN_ENABLE = controller.boolean(
    "controller.quorum.auto.join.enable", False, "Let a controller add itself to the voters.", importance=LOW
)
CONTROLLER_QUORUM_ELECTION_TIMEOUT_MS = controller.int32(
    "controller.quorum.election.timeout.ms",
    1_000,
    "Wait for a leader of the quorum before a new election.",
    valid=at_least(0),
    importance=HIGH,
)
CONTROLLER_QUORUM_ELECTION_BACKOFF_MAX_MS = controller.int32(
    "controller.quorum.election.backoff.max.ms",
    1_000,
    "Longest random wait after an election without a winner.",
    valid=at_least(0),
    importance=HIGH,
)
CONTROLLER_QUORUM_FETCH_TIMEOUT_MS = controller.int32(
    "controller.quorum.fetch.timeout.ms",
    2_000,
    "Time without a good fetch after which a voter stands for election.",
    valid=at_least(0),
    importance=HIGH,
)
CONTROLLER_QUORUM_APPEND_LINGER_MS = controller.int32(
    "controller.quorum.append.linger.ms",
    25,
    "Time the leader collects metadata records before it writes them.",
    valid=at_least(0),
    no_effect="what is decided is written at once, and what is decided during a write goes to disk with the next one",
)
CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS = controller.int32(
    "controller.quorum.request.timeout.ms",
    2_000,
    "Wait for the answer to a request within the quorum.",
    valid=at_least(0),
)
CONTROLLER_QUORUM_RETRY_BACKOFF_MS = controller.int32(
    "controller.quorum.retry.backoff.ms",
    20,
    "Wait before such a request is tried again.",
    valid=at_least(0),
    importance=LOW,
)
CONTROLLER_QUORUM_FETCH_MAX_BYTES = controller.int32(
    "controller.quorum.fetch.max.bytes",
    1_048_576,
    "Bytes of metadata log in one fetch.",
    valid=at_least(1),
    importance=LOW,
)
CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES = controller.int32(
    "controller.quorum.fetch.snapshot.max.bytes",
    1_048_576,
    "Bytes of a snapshot in one fetch.",
    valid=at_least(1),
    importance=LOW,
)
CONTROLLER_PERFORMANCE_SAMPLE_PERIOD_MS = controller.int64(
    "controller.performance.sample.period.ms",
    60_000,
    "How often the controller's timing is written to the log.",
    valid=at_least(100),
    internal=True,
    no_effect=NOT_YET,
)
CONTROLLER_PERFORMANCE_ALWAYS_LOG_THRESHOLD_MS = controller.int64(
    "controller.performance.always.log.threshold.ms",
    2_000,
    "Controller work that takes longer is always written to the log.",
    valid=at_least(0),
    internal=True,
    no_effect=NOT_YET,
)
SASL_MECHANISM_CONTROLLER_PROTOCOL = controller.text(
    "sasl.mechanism.controller.protocol",
    "GSSAPI",
    "SASL mechanism towards the controllers.",
    importance=HIGH,
)
INITIAL_BROKER_REGISTRATION_TIMEOUT_MS = controller.int32(
    "initial.broker.registration.timeout.ms", 60_000, "How long the first registration with the controller may take."
)
BROKER_HEARTBEAT_INTERVAL_MS = controller.int32(
    "broker.heartbeat.interval.ms", 2_000, "How often a broker tells the controller that it lives."
)
BROKER_SESSION_TIMEOUT_MS = controller.int32(
    "broker.session.timeout.ms", 9_000, "Time without a heartbeat after which a broker is fenced."
)
METADATA_LOG_DIR = controller.optional_text(
    "metadata.log.dir", "Directory of the metadata log, when it is not the first data directory.", importance=HIGH
)
METADATA_LOG_SEGMENT_BYTES = controller.int32(
    "metadata.log.segment.bytes",
    1_073_741_824,
    "Size at which a segment of the metadata log is closed.",
    valid=at_least(8_388_608),
    importance=HIGH,
)
METADATA_LOG_SEGMENT_MS = controller.int64(
    "metadata.log.segment.ms", 604_800_000, "Age at which a segment of the metadata log is closed.", importance=HIGH
)
METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS = controller.int64(
    "metadata.log.max.record.bytes.between.snapshots",
    20_971_520,
    "Bytes of metadata after which a snapshot is written.",
    valid=at_least(1),
    importance=HIGH,
)
METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS = controller.int64(
    "metadata.log.max.snapshot.interval.ms",
    3_600_000,
    "Time after which a snapshot is written, if anything changed; 0 switches it off.",
    valid=at_least(0),
    importance=HIGH,
)
METADATA_MAX_RETENTION_BYTES = controller.int64(
    "metadata.max.retention.bytes",
    104_857_600,
    "Size of metadata log and snapshots above which old ones go.",
    importance=HIGH,
    no_effect=NOT_YET,
)
METADATA_MAX_RETENTION_MS = controller.int64(
    "metadata.max.retention.ms",
    604_800_000,
    "Time metadata segments and snapshots are kept.",
    importance=HIGH,
    no_effect=NOT_YET,
)
METADATA_MAX_IDLE_INTERVAL_MS = controller.int32(
    "metadata.max.idle.interval.ms",
    500,
    "How often an empty metadata record is written; 0 switches it off.",
    valid=at_least(0),
    importance=LOW,
)
INTERNAL_METADATA_LOG_SEGMENT_BYTES = controller.optional_int32(
    "internal.metadata.log.segment.bytes",
    "Segment size of the metadata log in tests.",
    importance=LOW,
    internal=True,
    no_effect=NOT_YET,
)
INTERNAL_METADATA_MAX_BATCH_SIZE_IN_BYTES = controller.int32(
    "internal.metadata.max.batch.size.in.bytes",
    8_388_608,
    "Largest batch of the metadata log in tests.",
    importance=LOW,
    internal=True,
    no_effect=NOT_YET,
)
INTERNAL_METADATA_DELETE_DELAY_MILLIS = controller.int64(
    "internal.metadata.delete.delay.millis",
    60_000,
    "Time a removed metadata file stays on disk in tests.",
    importance=LOW,
    internal=True,
    no_effect=NOT_YET,
)
