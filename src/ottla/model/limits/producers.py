"""Idempotent producers and their ids."""

# Batches remembered per producer and partition, hence max.in.flight.requests.per.connection <= 5 for clients.
BATCHES_PER_PRODUCER = 5
# Headers that are read back for that at the end of a log that is opened: a few milliseconds.
RECALL_BATCHES_MAX = 512
# Producers that were silent for so long before the last one wrote have nothing under way (delivery.timeout.ms).
RECALL_MS = 120_000
# Producers remembered per partition. Kafka has no bound but time (producer.id.expiration.ms); a flood of one-shot
# producers must not grow without end. Who wrote within the last minutes stays (delivery.timeout.ms is two by default);
# of the others some are forgotten at once, the longest silent. What is replicated may exceed the bound by so many.
PRODUCERS_PER_PARTITION_MAX = 100_000
PRODUCERS_FORGOTTEN_AT_ONCE = 10_000
REMEMBERED_MINUTES = 5
# Ids handed out per AllocateProducerIds record.
PRODUCER_ID_BLOCK_SIZE = 1_000
# How often a command that needs a producer id is tried when others were quicker to take the new ones.
PRODUCER_ID_ATTEMPTS_MAX = 3
