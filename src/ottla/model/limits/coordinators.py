"""Coordinators of groups and transactions: journals, members, markers."""

from ottla.model.limits.units import KIB

# When what a coordinator's timer wanted could not be written, it is tried again after this long.
TIMER_RETRY_MS = 1_000
# Replies that a coordinator gives, and timers that are due at the same moment it looks at, in one turn of the loop: a
# reply takes some 30 µs; the end of a session in a group of 2,000 members 0.2 ms.
ANSWERS_AT_ONCE = 100
TIMERS_AT_ONCE = 50
# What a coordinator reads of its journal in one turn of the loop when it is loaded: some ten milliseconds.
COORDINATOR_LOAD_BYTES = 256 * KIB
# ... and how many records of it, and then of groups (with their members) and transactions, are taken up in one turn.
COORDINATOR_LOAD_RECORDS = 500
MEMBERS_LOADED_AT_ONCE = 2_000
TRANSACTIONS_LOADED_AT_ONCE = 1_000
# How soon a coordinator is loaded again whose journal could not be opened or read.
COORDINATOR_RETRY_MS = 1_000
# A new member's parked JoinGroup is given up after this: it cannot send heartbeats yet, and may be long gone.
NEW_MEMBER_JOIN_MS_MAX = 5 * 60 * 1000
# Static members that are all away keep their group in a rebalance; how soon it is looked at again, whatever rebalance
# timeout they asked for (it may be 0).
ABSENT_MEMBERS_WAIT_MS_MIN = 1_000
# Member ids given out by one group that nobody has come back with. Clients come back at once; if more are given out the
# oldest is forgotten, so that a flood of first joins costs no more than this.
PENDING_MEMBERS_MAX = 5_000
# Records that a coordinator writes for many at once (expired offsets, deleted topics, snapshots of quiet partitions)
# are written in portions, so that each stays well below the largest batch a log takes, and takes some 20 ms to write.
JOURNAL_PORTION_BYTES = 128 * KIB
# Offsets of all groups that are looked at in one turn whether they have to go (some 15 ms; one that has to counts as
# ten), and those of a deleted group that go with it in one batch.
OFFSETS_WALKED_AT_ONCE = 20_000
OFFSETS_DELETED_AT_ONCE = 1_000
# Partitions of one transaction: each change of it writes all of them again, 1 ms for a thousand. Kafka has no bound but
# the largest batch (some 200,000).
PARTITIONS_PER_TRANSACTION_MAX = 25_000
# Transactions that one look of the clock aborts or forgets: their records are one batch, which must fit a segment.
TRANSACTIONS_PER_SWEEP_MAX = 1_000
# How long somebody who asks for a coordinator waits for its topic to be made, before they are told to ask again.
INTERNAL_TOPIC_WAIT_MS = 1_000
# How long a change of a transaction waits to be on all replicas that are in sync.
TRANSACTION_WRITE_MS_MAX = 30_000
# How long a broker waits for another's answer about a transaction or a share group.
COORDINATOR_REQUEST_MS = 30_000
# What one such request holds at most: markers, transactions, share partitions.
OUTBOX_ITEMS_MAX = 2_000
# How long a marker waits to be on all replicas that are in sync, before it is written again.
MARKERS_WAIT_MS_MAX = 20_000
# How soon markers that could not be written are tried again.
MARKERS_RETRY_MS = 500
# Hashes of topics that are kept; computing one anew costs about a microsecond per partition.
TOPIC_HASHES_MAX = 10_000
# Hashes of names of groups and transactional ids that are kept.
KEY_HASHES_MAX = 10_000
