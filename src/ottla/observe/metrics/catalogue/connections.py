"""Connections, and how clients proved who they are."""

from ottla.observe.metrics.declaration import Area

connections = Area("Connections", "By the names of listeners.")

CONNECTIONS = connections.gauge("ottla_connections", "Open connections.", "listener")
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
