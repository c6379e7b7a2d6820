"""Share groups: sessions' members, delayed records, stored state, dead letters."""

from ottla.model.limits.units import KIB, MIB

# Records of one share partition that wait for their time (delayed delivery); behind so many nothing is handed out.
# Each may be a range of its own in the stored state, which must fit into one record.
SHARE_DELAYED_RECORDS_MAX = 10_000
# Bytes of records that are looked at (keys, delays) for one fetch, and records of one batch: some ten milliseconds.
SHARE_INSPECT_BYTES = 1 * MIB
SHARE_INSPECT_RECORDS = 10_000
# Stretches of markers and aborted transactions skipped by one fetch before the others have their turn.
SHARE_SKIPS_PER_FETCH_MAX = 64
# A batch of dead letters is closed when it has this many bytes of records.
DEAD_LETTER_BATCH_BYTES = 512 * KIB
# Dead letters that one produced batch may lead to where its topic has a contract, or twice the batch if that is more:
# at some 170 bytes each they are stamped and written in about 20 ms.
DEAD_LETTERS_PER_BATCH_BYTES = 8 * MIB
# What the provenance adds to a dead letter at most: topic and group have limited names, the rest are numbers.
DEAD_LETTER_PROVENANCE_BYTES = 64 * KIB
# Batches of dead letters that wait for the leader of their partition, another node.
DEAD_LETTER_BATCHES_WAITING_MAX = 64
# Ids that members of share groups choose themselves: room for a UUID as Java prints it; Kafka's bound.
SHARE_MEMBER_ID_CHARS_MAX = 36
# How often, and after which growing pause, the state of a share partition is asked for where it has just moved.
SHARE_STATE_ATTEMPTS_MAX = 10
SHARE_STATE_RETRY_MS = 50
SHARE_STATE_RETRY_MS_MAX = 1_000
