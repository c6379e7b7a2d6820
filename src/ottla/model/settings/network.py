"""Network. Listeners, sockets, and the limits on connections and queued requests."""

from ottla.model.limits import INT32_MAX, REQUEST_FRAME_BYTES_MAX
from ottla.model.section import CLUSTER_WIDE, HIGH, LOW, PER_BROKER, Section
from ottla.model.setting import NOT_YET
from ottla.model.validators import HostCounts, Items, OneOf, at_least

network = Section("Network", "Listeners, sockets, and the limits on connections and queued requests.")

LISTENERS = network.items(
    "listeners",
    ("PLAINTEXT://:9092",),
    "Addresses to listen on, as NAME://host:port.",
    valid=Items(empty=False),
    importance=HIGH,
    dynamic=PER_BROKER,
)
ADVERTISED_LISTENERS = network.optional_items(
    "advertised.listeners",
    "Addresses told to clients; without it a client gets back the address it dialled.",
    valid=Items(empty=False),
    importance=HIGH,
)
LISTENER_SECURITY_PROTOCOL_MAP = network.text(
    "listener.security.protocol.map",
    "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "Security protocol of each listener name.",
    importance=LOW,
    dynamic=PER_BROKER,
)
INTER_BROKER_LISTENER_NAME = network.optional_text(
    "inter.broker.listener.name", "Listener that brokers use among themselves."
)
SECURITY_INTER_BROKER_PROTOCOL = network.text(
    "security.inter.broker.protocol",
    "PLAINTEXT",
    "Security protocol between brokers when no listener is named for it.",
    valid=OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
)
NUM_NETWORK_THREADS = network.int32(
    "num.network.threads",
    3,
    "Threads that read and write sockets; one event loop does it here.",
    valid=at_least(1),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
SOCKET_SEND_BUFFER_BYTES = network.int32(
    "socket.send.buffer.bytes",
    102_400,
    "Send buffer of the sockets (SO_SNDBUF); -1 leaves it to the system.",
    importance=HIGH,
    no_effect=NOT_YET,
)
SOCKET_RECEIVE_BUFFER_BYTES = network.int32(
    "socket.receive.buffer.bytes",
    102_400,
    "Receive buffer of the sockets (SO_RCVBUF); -1 leaves it to the system.",
    importance=HIGH,
    no_effect=NOT_YET,
)
SOCKET_REQUEST_MAX_BYTES = network.int32(
    "socket.request.max.bytes",
    REQUEST_FRAME_BYTES_MAX,
    "Largest request that is read; a larger one closes the connection.",
    valid=at_least(1),
    importance=HIGH,
)
SOCKET_LISTEN_BACKLOG_SIZE = network.int32(
    "socket.listen.backlog.size",
    50,
    "Connections that may wait to be accepted.",
    valid=at_least(1),
    no_effect=NOT_YET,
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MS = network.int64(
    "socket.connection.setup.timeout.ms",
    10_000,
    "First wait for a connection to another node.",
    no_effect=NOT_YET,
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MAX_MS = network.int64(
    "socket.connection.setup.timeout.max.ms",
    30_000,
    "Longest wait for a connection to another node, after retries.",
    no_effect=NOT_YET,
)
MAX_CONNECTIONS = network.int32(
    "max.connections",
    INT32_MAX,
    "Most connections of the broker (or of one listener, with its prefix).",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
MAX_CONNECTIONS_PER_IP = network.int32(
    "max.connections.per.ip", INT32_MAX, "Most connections from one address.", valid=at_least(0), dynamic=CLUSTER_WIDE
)
MAX_CONNECTIONS_PER_IP_OVERRIDES = network.text(
    "max.connections.per.ip.overrides",
    "",
    "Other limits for single addresses, as address:count,...; names of hosts are not looked up.",
    valid=HostCounts(),
    dynamic=CLUSTER_WIDE,
)
MAX_CONNECTION_CREATION_RATE = network.int32(
    "max.connection.creation.rate",
    INT32_MAX,
    "Most new connections in a second (or of one listener, with its prefix); those above it wait.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
CONNECTIONS_MAX_IDLE_MS = network.int64(
    "connections.max.idle.ms", 600_000, "Idle time after which a connection is closed."
)
CONNECTION_FAILED_AUTHENTICATION_DELAY_MS = network.int32(
    "connection.failed.authentication.delay.ms",
    100,
    "Wait before a connection is closed whose authentication failed.",
    valid=at_least(0),
    importance=LOW,
)
QUEUED_MAX_REQUESTS = network.int32(
    "queued.max.requests",
    500,
    "Requests that may wait to be worked on.",
    valid=at_least(1),
    importance=HIGH,
    no_effect=NOT_YET,
)
QUEUED_MAX_REQUEST_BYTES = network.int64(
    "queued.max.request.bytes", -1, "Bytes of requests that may wait; -1 means no limit of its own."
)
