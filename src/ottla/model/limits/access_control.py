"""Access control entries: how many one request may change, and how many are handled in one slice."""

# ACL changes that one command may make; Kafka's controller has the same bound.
ACLS_PER_REQUEST_MAX = 10_000
# ACLs in the answer to one DeleteAcls: each of its filters lists all that it matched.
ACL_MATCHES_PER_REQUEST_MAX = 100_000
# ACLs that are compared with filters, described or taken over in one slice: some milliseconds.
ACLS_PER_SLICE = 1_000
# Texts of IPv6 addresses whose comparable form is kept: an address is asked about with every request of its clients.
HOST_FORMS_KEPT = 4_096
