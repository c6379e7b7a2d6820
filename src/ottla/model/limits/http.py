"""HTTP services."""

from ottla.model.limits.units import KIB, MIB

# Bytes of a request's body: a schema is stored as one record, and records above max.message.bytes are refused anyway.
HTTP_BODY_BYTES_MAX = 8 * MIB
# Bytes of all bodies that one service holds at a time.
HTTP_BODIES_BYTES_MAX = 256 * MIB
# Bytes of a request's head before all of it has come: an Authorization header of AUTHORIZATION_BYTES_MAX fits in, with
# cookies or a long path.
HTTP_HEAD_BYTES_MAX = 32 * KIB
# Open connections of one service. Beyond that an idle connection is closed; if all have a request, new ones are
# answered with 503.
HTTP_REQUESTS_AT_ONCE_MAX = 10_000
# One address has at most this part of them, a half, so that it cannot keep others out. It is that large because all
# programs of one machine, and all clients behind one proxy, have the same address.
HTTP_ADDRESS_PART = 2
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
# Bytes of a request's Authorization header: user and password in base64, or a token of a few KiB.
AUTHORIZATION_BYTES_MAX = 16 * KIB
# Passwords that brokers have confirmed: how many are remembered as salted hashes (one per user), and for how long.
# Within that time a password that was changed or revoked is still accepted.
PASSWORDS_CONFIRMED_MAX = 1_000
PASSWORD_CONFIRMED_MS = 30_000
# Passwords that brokers are asked about at the same time, for a registry or a console, and requests that wait for that;
# the others get 503.
PASSWORD_CHECKS_AT_ONCE_MAX = 16
PASSWORD_CHECKS_WAITING_MAX = 256
# The same limits for one client address, and for one user, so that a flood of wrong passwords leaves room for others.
PASSWORD_CHECKS_PER_HOST_MAX = 4
PASSWORD_CHECKS_PER_USER_MAX = 8
PASSWORD_CHECKS_WAITING_PER_HOST_MAX = 64
# After how long a client that got 503 for this reason may try again (`Retry-After`).
PASSWORD_RETRY_AFTER_S = 1
# Brokers that are asked about a password before the answer is that none can be reached.
PASSWORD_CHECK_BROKERS_MAX = 3
# How often a service reads the cluster's ACLs, and from which age on it no longer decides by them: then only super
# users are allowed anything.
ACLS_READ_INTERVAL_MS = 3_000
ACLS_AGE_MS_MAX = 30_000
# How far the clock of an instance that forwards a request may be from that of the instance that gets it.
FORWARDED_AGE_MS_MAX = 30_000
# Forwarded requests that an instance remembers for that time, because it accepts each only once.
FORWARDED_NONCES_MAX = 200_000
# Characters of the secret that instances share: fewer could be guessed.
INTER_INSTANCE_SECRET_CHARS_MIN = 16
# How often a service looks whether the files of its certificate have changed.
CERTIFICATE_LOOK_INTERVAL_S = 2
# How long a TLS handshake of an HTTPS connection may take.
HTTPS_HANDSHAKE_S = 10
# HTTPS connections whose TLS handshake is not finished; the oldest is given up for a new one. At most half of the
# connections that a server may have. One address has at most HTTP_ADDRESS_PART of them.
HTTPS_HANDSHAKES_MAX = 1_024
# Connections that are accepted in one turn of the event loop.
HTTPS_ACCEPTED_AT_ONCE_MAX = 64
# How long a port accepts nothing when the process has no descriptor left.
HTTPS_ACCEPT_PAUSE_S = 0.5
