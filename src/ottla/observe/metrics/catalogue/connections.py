"""Connections, and how clients proved who they are."""

from ottla.observe.metrics.declaration import Area

connections = Area("Connections", "By the names of listeners.")

CONNECTIONS = connections.gauge(
    "ottla_connections",
    "Connections by state: handshaking (TLS), authenticating (SASL), open.",
    "listener",
    "state",
)
ALL_CONNECTIONS = connections.gauge(
    "kafka_server_socket_server_metrics_connection_count",
    "Connections in any state.",
    "listener",
    mbean="kafka.server:type=socket-server-metrics,listener=*,networkProcessor=* (connection-count)",
)
REFUSED = connections.counter(
    "ottla_connections_refused_total",
    "Connections closed at once: too many of an address or of a tenant, or a certificate without a principal.",
    "listener",
)
LOGINS = connections.counter(
    "ottla_authentication_successes_total", "Clients that proved who they are.", "listener", "mechanism"
)
FAILED_LOGINS = connections.counter(
    "ottla_authentication_failures_total", "Clients that did not prove who they are.", "listener", "mechanism"
)
THROTTLED = connections.summary(
    "ottla_throttle_seconds",
    "The waits that clients over a quota were told; the quotas are those on produced and fetched bytes and on "
    "request time.",
    "request",
    unit="seconds",
)
