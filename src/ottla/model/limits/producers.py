"""Idempotent producers and their ids."""

# Batches remembered per producer and partition; so clients must have max.in.flight.requests.per.connection <= 5.
BATCHES_PER_PRODUCER = 5
# Batch headers at the end of a log that are read back, when the log is opened, to restore them: a few milliseconds.
RECALL_BATCHES_MAX = 512
# A producer that was silent for this long before the log's last write has no request in flight (delivery.timeout.ms).
RECALL_MS = 120_000
# Producers remembered per partition. Kafka bounds them only by time (producer.id.expiration.ms), but a flood of
# one-shot producers must not grow without end. Producers that wrote within REMEMBERED_MINUTES stay (delivery.timeout.ms
# is two minutes by default); of the others PRODUCERS_FORGOTTEN_AT_ONCE are forgotten together, the longest silent
# first. Replicated records may exceed the bound by that number.
PRODUCERS_PER_PARTITION_MAX = 100_000
PRODUCERS_FORGOTTEN_AT_ONCE = 10_000
REMEMBERED_MINUTES = 5
# Producer ids allocated per AllocateProducerIds record.
PRODUCER_ID_BLOCK_SIZE = 1_000
# How often a command that needs a producer id is tried if other commands take the new ids first.
PRODUCER_ID_ATTEMPTS_MAX = 3
