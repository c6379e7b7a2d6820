"""Our client: Arrow, metadata, hot and salted keys."""

from ottla.model.limits.units import GIB, MIB

# Bytes of records (unpacked) in one Arrow batch: its columns count with 32 bits.
ARROW_BYTES_MAX = 1 * GIB
# Bytes of batches, as fetched, that are gathered for one Arrow batch: unpacked they are to stay below that bound.
ARROW_GATHERED_BYTES_MAX = 8 * MIB
# Topics whose metadata a client keeps; one that touches more asks again for those it left longest ago.
CLIENT_TOPICS_MAX = 100_000
# Calls under way at the same time of an operation over many groups, transactional ids or topics that has no request for
# several of them.
CLIENT_CALLS_AT_ONCE = 64
# How long a producer goes on delivering what it has taken when its task is cancelled, or its program interrupted.
INTERRUPTED_DELIVERY_MAX_MS = 10_000
# Partitions one hot key is spread over, keys watched for being hot, and keys that may be found so by one producer.
SALT_SHARDS_MAX = 1_024
HOT_KEY_COUNTERS_MAX = 100_000
HOT_KEYS_FOUND_MAX = 1_000
# Records that a merge of salted keys holds back for an earlier one, and keys and producers it remembers.
SALTED_RECORDS_HELD_MAX = 100_000
SALTED_SOURCES_MAX = 10_000
# Keys whose partition a producer remembers, and how long they may be: hashing costs more than looking up.
HASHED_KEYS_REMEMBERED = 16_384
HASHED_KEY_BYTES_MAX = 64
