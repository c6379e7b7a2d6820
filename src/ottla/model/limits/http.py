"""HTTP services."""

from ottla.model.limits.units import KIB, MIB

# Bytes of a request's body: a schema is stored as one record, and records above max.message.bytes are refused anyway.
HTTP_BODY_BYTES_MAX = 8 * MIB
# Bytes of all bodies that one service holds at a time.
HTTP_BODIES_BYTES_MAX = 256 * MIB
# Open connections of one service. Beyond that an idle connection is closed; if all have a request, new ones are
# answered with 503.
HTTP_REQUESTS_AT_ONCE_MAX = 10_000
# How long a connection may be idle, or have sent only a part of a request's head. Clients keep connections in pools,
# and a connection that is closed under a request looks like a failure to them.
HTTP_WAIT_S = 60
# Connections that wait to be accepted.
HTTP_BACKLOG = 1_024
# Requests that a registry forwards to the leader at the same time, and the size of an answer.
FORWARDED_REQUESTS_MAX = 16
FORWARDED_ANSWER_BYTES_MAX = 8 * MIB
# Bytes that a registry instance publishes about itself in the group: a host, a port and a few words.
REGISTRY_IDENTITY_BYTES_MAX = 4 * KIB
