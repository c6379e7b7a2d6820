"""Fetches: sessions, waiting, and read_committed."""

from ottla.model.limits.units import KIB, MIB

# max.incremental.fetch.session.cache.slots (KIP-227).
FETCH_SESSIONS_MAX = 1_000
# A session that was idle for less than this is not evicted for an equal one (KIP-227's rule).
FETCH_SESSION_EVICTION_MS = 120_000
# Partitions of one consumer's session, and of all sessions together, at some 350 bytes each: 180 MB, or 340 MB if each
# has a topic of its own with the longest name. A consumer with more partitions, or with names that no topic can have,
# names all of them in every fetch. Followers' sessions may be larger, and evict consumers' sessions.
FETCH_SESSION_PARTITIONS_MAX = 50_000
FETCH_SESSIONS_PARTITIONS_MAX = 500_000
# Partitions of a share session: there may be thousands of such sessions, so each is kept small.
SHARE_SESSION_PARTITIONS_MAX = 10_000
# Default of the broker's fetch.max.bytes.
FETCH_BYTES_MAX = 55 * MIB
# Waiting fetches, acks=all produces and coordinator replies over the whole node.
WAITERS_MAX = 200_000
# Partitions that all of them wait for together, counted once per waiter: up to 1 KiB each with the answer, so 1 GiB at
# the worst. Produces and followers' fetches have no other bound than this.
WAITED_FOR_MAX = 1_000_000
# Waiters for a changed partition that are tried before other work has a turn: 10 ms if all of them are answered. A
# waiter for many partitions counts for several.
WAITERS_TRIED_PER_TURN = 100
# Partitions that a fetch may wait for without reserving memory (of queued.max.request.bytes), and the memory reserved
# for each partition of a fetch that waits for more.
WAITED_PARTITIONS_FREE = 16
WAITED_PARTITION_BYTES = 1 * KIB
# A client may ask for any timeout; no produce, fetch or admin request waits longer than this.
WAIT_MS_MAX = 30 * 60_000
# Aborted transactions in one answer to a read_committed fetch: about 20 ms of work. If there were more, the answer has
# fewer records.
ABORTED_PER_FETCH_MAX = 10_000
# Blocks of a transaction index that one such fetch reads for the first time (see `log.committed`): about 20 ms.
ABORTED_BLOCKS_SUMMARIZED_MAX = 600
