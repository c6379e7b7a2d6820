"""Share groups: delayed records, stored state, dead letters."""

from ottla.model.limits.units import KIB, MIB

# Records of one share partition that wait for their delivery time; beyond that no later record is handed out. Each may
# be a range of its own in the stored state, which must fit into one record.
SHARE_DELAYED_RECORDS_MAX = 10_000
# Bytes of records whose keys and delays are examined for one fetch, and records of one batch: some ten milliseconds.
SHARE_INSPECT_BYTES = 1 * MIB
SHARE_INSPECT_RECORDS = 10_000
# Ranges of markers and aborted transactions that one fetch skips before other work has a turn.
SHARE_SKIPS_PER_FETCH_MAX = 64
# A batch of dead letters is closed when it has this many bytes of records.
DEAD_LETTER_BATCH_BYTES = 512 * KIB
# Bytes of dead letters that one produced batch may cause if its topic has a contract, or twice the batch if that is
# more: at some 170 bytes each they are stamped and written in about 20 ms.
DEAD_LETTERS_PER_BATCH_BYTES = 8 * MIB
# Bytes that the provenance headers add to a dead letter at most: topic and group have bounded names, the rest are
# numbers.
DEAD_LETTER_PROVENANCE_BYTES = 64 * KIB
# Share groups whose deliveries a node counts.
SHARE_GROUPS_COUNTED_MAX = 10_000
# Batches of dead letters that wait for another node, the leader of their partition.
DEAD_LETTER_BATCHES_WAITING_MAX = 64
# Characters of a member id that a member of a share group chooses: room for a UUID as Java prints it; Kafka's bound.
SHARE_MEMBER_ID_CHARS_MAX = 36
# Attempts to read the state of a share partition that has just moved, and the growing pause between them.
SHARE_STATE_ATTEMPTS_MAX = 10
SHARE_STATE_RETRY_MS = 50
SHARE_STATE_RETRY_MS_MAX = 1_000
