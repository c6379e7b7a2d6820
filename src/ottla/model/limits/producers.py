"""Idempotent producers and their ids."""

# Batches remembered per producer and partition, hence max.in.flight.requests.per.connection <= 5 for clients.
BATCHES_PER_PRODUCER = 5
# Headers that are read back for that at the end of a log that is opened: a few milliseconds.
RECALL_BATCHES_MAX = 512
# Producers that were silent for so long before the last one wrote have nothing under way (delivery.timeout.ms).
RECALL_MS = 120_000
# Producers remembered per partition. Kafka has no bound but time (producer.id.expiration.ms); a flood of one-shot
# producers must not grow without end, so the longest idle go first.
PRODUCERS_PER_PARTITION_MAX = 100_000
# Ids handed out per AllocateProducerIds record.
PRODUCER_ID_BLOCK_SIZE = 1_000
# How often a command that needs a producer id is tried when others were quicker to take the new ones.
PRODUCER_ID_ATTEMPTS_MAX = 3
