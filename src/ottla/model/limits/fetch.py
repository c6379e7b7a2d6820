"""Fetches: sessions, waiting, and what read_committed reads."""

from ottla.model.limits.units import KIB, MIB

# max.incremental.fetch.session.cache.slots (KIP-227).
FETCH_SESSIONS_MAX = 1_000
# A session idle for less than this is not evicted for an equal one (KIP-227's rule).
FETCH_SESSION_EVICTION_MS = 120_000
# Partitions of one consumer's session, and of all sessions together, at some 350 bytes each: 180 MB. A consumer of more
# names them with every fetch. Followers' sessions may be larger, and take the place of consumers'.
FETCH_SESSION_PARTITIONS_MAX = 50_000
FETCH_SESSIONS_PARTITIONS_MAX = 500_000
# Partitions that one member of a share group reads: there may be thousands of such sessions, so each is kept small.
SHARE_SESSION_PARTITIONS_MAX = 10_000
# fetch.max.bytes of the broker.
FETCH_BYTES_MAX = 55 * MIB
# Parked long polls, acks=all produces and coordinator replies over the whole node.
WAITERS_MAX = 200_000
# What all of them wait for together (partitions, each as often as somebody waits for it): up to 1 KiB each with what is
# to be answered, so 1 GiB at the worst. Produces and followers' fetches have no other bound than this.
WAITED_FOR_MAX = 1_000_000
# Of those who wait for a partition that changed, how many are tried before the others have their turn: 10 ms if all of
# them are answered. One that waits for many partitions counts for several.
WAITERS_TRIED_PER_TURN = 100
# Partitions that a poll waits for without reserving memory (of queued.max.request.bytes); what each takes of more.
PARKED_KEYS_FREE = 16
PARKED_KEY_BYTES = 1 * KIB
# A client may ask for any timeout; nobody waits longer than this for a produce, fetch or admin answer.
WAIT_MS_MAX = 30 * 60_000
# Aborted transactions in one answer to a read_committed fetch: about 20 ms of work. More make its records fewer.
ABORTED_PER_FETCH_MAX = 10_000
# Blocks of a transaction index that one such fetch reads for the first time (see `log.committed`): about 20 ms.
ABORTED_BLOCKS_LEARNED_MAX = 600
