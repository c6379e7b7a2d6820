"""Coordinators of groups and transactions: journals, members, markers."""

from ottla.model.limits.units import KIB

# Pause before a coordinator's timer runs again whose records could not be written.
TIMER_RETRY_MS = 1_000
# Replies that a coordinator sends, and due timers that it runs, in one turn of the loop: a reply takes some 30 µs; the
# end of a session in a group of 2,000 members 0.2 ms.
ANSWERS_AT_ONCE = 100
TIMERS_AT_ONCE = 50
# Bytes of its journal that a loading coordinator reads in one turn of the loop: some ten milliseconds.
COORDINATOR_LOAD_BYTES = 256 * KIB
# Records of the journal that it applies in one turn, and then members of groups, and transactions, that it resumes.
COORDINATOR_LOAD_RECORDS = 500
MEMBERS_LOADED_AT_ONCE = 2_000
TRANSACTIONS_LOADED_AT_ONCE = 1_000
# Pause before a coordinator is loaded again whose journal could not be opened or read.
COORDINATOR_RETRY_MS = 1_000
# A new member's parked JoinGroup is dropped after this time: the member cannot send heartbeats yet, and may be gone.
NEW_MEMBER_JOIN_MS_MAX = 5 * 60 * 1000
# Static members that are all away keep their group in a rebalance; the group is checked again after this time, even if
# their rebalance timeout is shorter (it may be 0).
ABSENT_MEMBERS_WAIT_MS_MIN = 1_000
# Member ids that one group has given out and that were not used yet. Clients use them at once; beyond the bound the
# oldest id is forgotten, so that a flood of first joins costs no more than this.
PENDING_MEMBERS_MAX = 5_000
# Records that a coordinator writes for many groups at once (expired offsets, deleted topics, snapshots of quiet
# partitions) are written in portions of this size, well below the largest batch a log takes; each takes some 20 ms to
# write.
JOURNAL_PORTION_BYTES = 128 * KIB
# Offsets of all groups that are checked for expiry in one turn (some 15 ms; an expired one counts as ten), and offsets
# of a deleted group that are deleted in one batch.
OFFSETS_WALKED_AT_ONCE = 20_000
OFFSETS_DELETED_AT_ONCE = 1_000
# Partitions of one transaction: each change of the transaction writes all of them again, 1 ms for a thousand. Kafka has
# no bound but the largest batch (some 200,000).
PARTITIONS_PER_TRANSACTION_MAX = 25_000
# Transactions that one periodic check aborts or forgets: their records are one batch, which must fit a segment.
TRANSACTIONS_PER_SWEEP_MAX = 1_000
# How long a request for a coordinator waits for the internal topic to be created, before the client is told to retry.
INTERNAL_TOPIC_WAIT_MS = 1_000
# How long a change of a transaction waits to be on all in-sync replicas.
TRANSACTION_WRITE_MS_MAX = 30_000
# How long a broker waits for another broker's answer about a transaction or a share group.
COORDINATOR_REQUEST_MS = 30_000
# Items of one such request: markers, transactions, share partitions.
OUTBOX_ITEMS_MAX = 2_000
# How long a marker waits to be on all in-sync replicas, before it is written again.
MARKERS_WAIT_MS_MAX = 20_000
# Pause before markers that could not be written are tried again.
MARKERS_RETRY_MS = 500
# Topic hashes that are cached; computing one costs about a microsecond per partition.
TOPIC_HASHES_MAX = 10_000
# Hashes of group ids and transactional ids that are cached.
KEY_HASHES_MAX = 10_000
# What the group coordinators of a node remember of the changes of their groups, to explain rebalances: some 500 bytes
# each, so 10 MB at most; of one group no more than this, and nothing that is older.
GROUP_EVENTS_PER_NODE_MAX = 20_000
GROUP_EVENTS_PER_GROUP_MAX = 200
GROUP_EVENTS_KEPT_MS = 24 * 60 * 60 * 1000
# Nothing is remembered of groups with longer ids: clients choose them, up to 32,767 bytes each.
GROUP_EVENTS_ID_CHARS_MAX = 250
# Characters of each text in such an event; clients choose their member ids, client ids and reasons.
GROUP_EVENT_TEXT_MAX = 250
