"""What the tests of the source share: topics with something of everything in them, and both sources side by side."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from ottla import ProducerOptions
from ottla.client.blocking.blocking import Blocking
from ottla.records.compress import Codec

_numbers = count()


def fresh(name: str) -> str:
    """A topic name that no other test has."""
    return f"{name}-{next(_numbers)}"


def write_mixture(bootstrap: str, topic: str, partitions: int = 2) -> int:
    """Batches of every codec; with and without keys, values and headers. The number of records."""
    with Blocking(bootstrap) as client:
        client.admin.topics.create(topic, partitions, configs={"retention.ms": "-1"})  # for its times are old
    per_codec = 40
    for codec in Codec:
        with Blocking(bootstrap, ProducerOptions(codec=codec)) as client:
            for number in range(per_codec):
                key = None if number % 3 == 0 else b"key-%d" % number
                value = None if number % 7 == 0 else b"%s-%d" % (codec.name.encode(), number)
                headers = [("h", b"%d" % number), ("none", None)][: number % 3]
                at = 1_700_000_000_000 + 1000 * number
                client.post(topic, value, key, headers=headers, partition=number % partitions, timestamp=at)
            client.flush()
    return per_codec * len(Codec)


def write_transactions(bootstrap: str, topic: str) -> None:
    """Committed, aborted, committed; one partition, so offsets have gaps where the markers are."""
    with Blocking(bootstrap) as client:
        client.admin.topics.create(topic, 1)
    with Blocking(bootstrap, ProducerOptions(transactional_id=f"tx-{topic}")) as client:
        for number in range(6):
            try:
                with client.transaction():
                    for index in range(10):
                        client.post(topic, b"%d-%d" % (number, index), partition=0)
                    client.flush()
                    if number % 2:
                        raise _Abort
            except _Abort:
                pass


class _Abort(Exception):
    pass


def write(bootstrap: str, topic: str, values: range, partition: int = 0) -> None:
    """Numbers, as text."""
    with Blocking(bootstrap) as client:
        for number in values:
            client.post(topic, b"%d" % number, partition=partition)
        client.flush()


def frame(spark: Any, kind: str, bootstrap: str, options: Mapping[str, str]) -> Any:
    """A batch DataFrame of either source."""
    return spark.read.format(kind).options(**{"kafka.bootstrap.servers": bootstrap, **options}).load()


def rows(found: Any) -> list[Any]:
    """All rows, in the log's order."""
    return sorted(found.collect(), key=lambda row: (row.topic, row.partition, row.offset))


def offsets(document: Any) -> Any:
    """A mark without what it says of topics beyond offsets."""
    return {topic: places for topic, places in document.items() if places}
