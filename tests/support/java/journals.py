"""Internal topics (the journals of coordinators) as Kafka's console consumer and its formatters print them."""

from tests.support.waiting import WAIT_MS

from ottla.client.blocking.blocking import Blocking
from ottla.model.java import java_abs, java_hash

FORMATTERS = "org.apache.kafka.tools.consumer."
PARTITIONS = 50


def journal_words(bootstrap: str, topic: str, key: str, formatter: str) -> tuple[str, ...]:
    """Arguments for the console consumer: it prints the partition of `key` (a group, a transactional id), and ends.

    The consumer ends after the number of records that are visible to consumers: transaction markers have offsets, but
    are not visible, and a consumer that waited for more records would run into its timeout.
    """
    partition = java_abs(java_hash(key)) % PARTITIONS
    with Blocking(bootstrap) as client:
        shown = sum(1 for _ in client.read(topic, partition))
    where = ("--topic", topic, "--partition", f"{partition}", "--offset", "earliest")
    until = ("--max-messages", f"{shown}", "--timeout-ms", WAIT_MS)
    return (*where, *until, "--formatter", FORMATTERS + formatter)
