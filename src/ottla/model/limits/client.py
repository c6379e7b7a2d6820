"""The client: Arrow, metadata, hot and salted keys, security."""

from ottla.model.limits.units import GIB, KIB, MIB

# Decompressed bytes of records in one Arrow batch: its columns have 32-bit offsets.
ARROW_BYTES_MAX = 1 * GIB
# Fetched bytes of batches that are gathered for one Arrow batch: decompressed they should stay below ARROW_BYTES_MAX.
ARROW_GATHERED_BYTES_MAX = 8 * MIB
# Topics whose metadata a client keeps; beyond that it drops the least recently used ones and asks for them again.
CLIENT_TOPICS_MAX = 100_000
# Concurrent requests of an operation over many groups, transactional ids or topics if one request cannot name several.
CLIENT_CALLS_AT_ONCE = 64
# How long a producer goes on delivering accepted records when its task is cancelled or its program interrupted.
INTERRUPTED_DELIVERY_MAX_MS = 10_000
# Partitions that one hot key is spread over, keys that are counted to detect hot ones, and hot keys that one producer
# may find.
SALT_SHARDS_MAX = 1_024
HOT_KEY_COUNTERS_MAX = 100_000
HOT_KEYS_FOUND_MAX = 1_000
# Records that a merge of salted keys holds back for an earlier one, and sources (keys and producers) that it remembers.
SALTED_RECORDS_HELD_MAX = 100_000
SALTED_SOURCES_MAX = 10_000
# Keys whose partition a producer caches, and their largest size: hashing costs more than a lookup.
HASHED_KEYS_REMEMBERED = 16_384
HASHED_KEY_BYTES_MAX = 64
# Messages of a SASL exchange that a client sends before it gives up: a mechanism needs two or three.
SASL_ROUNDS_MAX = 16
# TLS contexts and tokens of an identity provider that a process keeps: one for each different set of settings.
TLS_CONTEXTS_MAX = 64
TOKENS_KEPT_MAX = 64
# The largest answer of a token endpoint: tokens have some kilobytes.
TOKEN_ANSWER_BYTES_MAX = 256 * KIB
# A token endpoint that has not given a whole answer after this time counts as down.
TOKEN_READ_S = 10
# The command line: width and precision of a field in `--template`: every record is shown with that many characters.
TEMPLATE_WIDTH_MAX = 10_000
# Bytes of a record's key by which a sample of a topic counts it; longer keys count by their beginning.
SAMPLED_KEY_BYTES_MAX = 256
# Keys that such a sample counts at a time.
SAMPLED_KEYS_MAX = 1_000
# Bytes of a file that holds a secret: a key with its certificates.
SECRET_FILE_BYTES_MAX = 1 * MIB
