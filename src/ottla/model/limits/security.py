"""Authentication: what a peer may send before it has proven who it is. Access control entries."""

from ottla.model.limits.units import GIB, KIB, MIB

# Bytes of one message of a SCRAM or PLAIN exchange. Names, passwords and nonces have some hundred bytes.
SCRAM_MESSAGE_BYTES_MAX = 16 * KIB
PLAIN_MESSAGE_BYTES_MAX = 16 * KIB
# Iterations of a SCRAM credential, as with Kafka. A server refuses to create or to use a credential outside of these.
SCRAM_ITERATIONS_MIN = 4_096
SCRAM_ITERATIONS_MAX = 16_384
# Iterations that a client carries out if a server asks for them: about half a second of one core. Servers other than
# Kafka may use more than Kafka allows, but a server must not be able to occupy a client for hours.
SCRAM_CLIENT_ITERATIONS_MAX = 1_000_000
# Characters of a JAAS configuration.
JAAS_CHARACTERS_MAX = 1_024 * KIB
# Credentials that are looked at to find the usual number of iterations, for each login.
SCRAM_CREDENTIALS_COMPARED = 100
# Bytes of a bearer token, and of the message that holds it together with its extensions. Tokens have one to four KiB.
JWT_BYTES_MAX = 64 * KIB
OAUTH_MESSAGE_BYTES_MAX = 128 * KIB
# Bytes of a set of keys (JWKS), and keys in it. Providers publish a few keys of some KiB.
JWKS_BYTES_MAX = 1_024 * KIB
JWKS_KEYS_MAX = 1_000
# A provider that has not answered after this time counts as down.
JWKS_READ_S = 10
# The shortest time between two reads of a provider's keys, whatever tokens clients send.
JWKS_READ_AGAIN_MS = 5_000
# Doublings of the wait after a read that failed; the settings have a longest wait besides.
JWKS_DOUBLINGS_MAX = 20
# Bits of an RSA key: fewer can be broken, more take long to verify with. An exponent is usually 65537.
JWK_RSA_BITS_MIN = 2_048
JWK_RSA_BITS_MAX = 16_384
JWK_RSA_EXPONENT_MAX = 2**32
# Characters of a certificate's or a ticket's name that rules are applied to, and of all rules of a setting. Rules are
# written by operators, names come from whoever has a certificate.
PRINCIPAL_NAME_CHARACTERS_MAX = 4 * KIB
PRINCIPAL_RULES_CHARACTERS_MAX = 64 * KIB
# Steps that all rules together may take with one name: some 20 ms. A rule of six fields takes about 20 for each
# character of a name; names have some hundred characters.
PRINCIPAL_RULES_WORK_MAX = 40_000
# Bytes of a server's refusal that a client repeats in its error message.
REFUSAL_BYTES_SHOWN_MAX = 1 * KIB
# Delegation tokens of one owner, and the renewers of one token with the characters of all their names: every node keeps
# all tokens in memory, and whoever has logged in may create them.
TOKENS_PER_OWNER_MAX = 1_000
TOKEN_RENEWERS_MAX = 100
TOKEN_RENEWERS_CHARACTERS_MAX = 8 * KIB
# Delegation tokens whose SCRAM credential a listener keeps derived; deriving one takes some milliseconds.
TOKEN_IDENTITIES_MAX = 1_000
# Characters, in the log and the audit log, of the name that a client claimed, and of the reason of its refusal.
CLAIMED_CHARACTERS_MAX = 128
# Events of the audit log that wait to be written, also until a topic takes the first ones; further ones are only
# counted. A second of a busy cluster.
AUDIT_EVENTS_MAX = 10_000
# How much one principal may write to the audit log with events of one sort: events each time the log is written (a
# client can name 100,000 topics in a request), and bytes per minute; further events are counted in one line. At that
# rate the files below keep the history of 40 hours.
AUDIT_SHARE_EVENTS_MAX = 100
AUDIT_SHARE_BYTES_PER_MINUTE = 128 * KIB
AUDIT_SHARE_MS = 60_000
# Principals and sorts of events with a share of their own; further ones share one.
AUDIT_SHARES_MAX = 10_000
# Characters of a field of an event; those of groups and transactional ids can have 32,767.
AUDIT_FIELD_CHARACTERS_MAX = 512
# The names in the event of a change: how many, the characters of each, and of all together.
AUDIT_NAMES_MAX = 20
AUDIT_NAME_CHARACTERS_MAX = 512
AUDIT_NAMES_CHARACTERS_MAX = 4 * KIB
# How often the audit log is written.
AUDIT_FLUSH_MS = 1_000
# The topic of the audit log must take events within this time; otherwise they are lost, or wait if they are the first.
AUDIT_WRITE_S = 5
# When a node stops, events that could not be written within this time are dropped.
AUDIT_CLOSE_S = 2
# The size at which a new file of the audit log is begun, and how many of the old ones are kept.
AUDIT_FILE_BYTES_MAX = 64 * MIB
AUDIT_FILES_KEPT = 4
# The topic of the audit log, which all nodes write: how long it keeps its records, how many bytes of them each replica
# keeps, and the size of its segments, which are removed as a whole.
AUDIT_RETENTION_MS = 30 * 24 * 3_600_000
AUDIT_RETENTION_BYTES = 1 * GIB
AUDIT_SEGMENT_BYTES = 64 * MIB
# Days for which certificates of `ottla tls` and `ottla up --secure` are valid. Browsers and Apple's systems refuse
# certificates of servers that are valid for more than 398 days.
AUTHORITY_DAYS = 3_650
CERTIFICATE_DAYS = 397
# How many days before a certificate expires the warnings begin.
CERTIFICATE_WARNING_DAYS = 30
# How often the certificates of a listener are checked for that.
CERTIFICATE_LOOK_MS = 24 * 3_600_000
# The largest file of certificates that `ottla tls show` reads.
CERTIFICATE_FILE_BYTES_MAX = 1_024 * KIB
# Characters of delegation.token.secret.key below which a node warns: a shorter one can be found by trying.
TOKEN_SECRET_CHARACTERS_MIN = 32
# ACL changes that one command may make; Kafka's controller has the same bound.
ACLS_PER_REQUEST_MAX = 10_000
# ACLs in the answer to one DeleteAcls: each of its filters lists all that it matched.
ACL_MATCHES_PER_REQUEST_MAX = 100_000
# ACLs that are compared with filters, described or taken over in one slice: some milliseconds.
ACLS_PER_SLICE = 1_000
# Texts of IPv6 addresses whose comparable form is kept: an address is asked about with every request of its clients.
HOST_FORMS_KEPT = 4_096
