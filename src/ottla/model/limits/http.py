"""HTTP services."""

from ottla.model.limits.units import KIB, MIB

# Bytes of a request's body: a schema is stored as one record, and records above max.message.bytes are refused anyway.
HTTP_BODY_BYTES_MAX = 8 * MIB
# Bytes of all bodies that one service holds.
HTTP_BODIES_BYTES_MAX = 256 * MIB
# Connections that one service has open at a time. One without a request gives way; where all have one, others are told
# to come back (503).
HTTP_REQUESTS_AT_ONCE_MAX = 10_000
# How long a connection may be without a request, or with half of its head. Clients keep connections in pools, and one
# that is closed under a request looks to them like a failure.
HTTP_WAIT_S = 60
# Connections that wait to be accepted.
HTTP_BACKLOG = 1_024
# Requests that a registry has under way to the leader, and the answer to one of them.
FORWARDED_REQUESTS_MAX = 16
FORWARDED_ANSWER_BYTES_MAX = 8 * MIB
# What an instance says of itself in the group: a host, a port and a few words.
REGISTRY_IDENTITY_BYTES_MAX = 4 * KIB
