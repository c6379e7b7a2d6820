"""Topics: records in and out since the node started, and what their logs hold.

Partitions count while they are open, and a replica that is removed takes its counts along. So each scrape adds what
came since the last one to totals that only grow (`named.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model import limits
from ottla.model.config import Config
from ottla.model.settings.own import (
    OTTLA_METRICS_TOPICS_EXCLUDE,
    OTTLA_METRICS_TOPICS_INCLUDE,
    OTTLA_METRICS_TOPICS_MAX,
)
from ottla.observe.metrics.catalogue import topics as told
from ottla.observe.metrics.catalogue.partitions import MAX_LAG
from ottla.observe.metrics.catalogue.storage import PRODUCER_IDS
from ottla.observe.metrics.exposition import Exposition
from ottla.replica.partition import Partition
from ottla.server.loop.slices import Steps, Tally
from ottla.server.metrics.named import OTHER, NamedTotals, ToldNames, add_to
from ottla.server.metrics.partitions import PartitionsCollector
from ottla.server.storage.partitions import Held, Partitions

_COUNTERS = (
    told.MESSAGES_IN,
    told.BYTES_IN,
    told.BYTES_OUT,
    told.TOTAL_PRODUCE,
    told.TOTAL_FETCH,
    told.FAILED_PRODUCE,
    told.FAILED_FETCH,
    told.RECORDS_OUT,
)
_BYTES_OUT, _RECORDS_OUT = 2, 7
# Of partitions led here, as `PartitionsCollector` counts them.
_OF_PARTITIONS = (
    told.REPLICAS,
    told.IN_SYNC,
    told.PARTITIONS_UNDER_REPLICATED,
    told.PARTITIONS_UNDER_MIN_ISR,
    told.PARTITIONS_AT_MIN_ISR,
)
_GAUGES = (told.LOG_SIZE, told.LOG_SEGMENTS, told.LOG_START, told.LOG_END, told.UNSTABLE)
_NOTHING = (0,) * len(_OF_PARTITIONS)
_TRAFFIC = (1, 2)  # of the counters, those that say how busy a topic is: the bytes


def topic_names(settings: Config) -> ToldNames:
    return ToldNames(
        settings[OTTLA_METRICS_TOPICS_MAX],
        settings[OTTLA_METRICS_TOPICS_INCLUDE],
        settings[OTTLA_METRICS_TOPICS_EXCLUDE],
    )


class TopicsCollector:
    def __init__(self, partitions: Partitions, settings: Config, states: PartitionsCollector) -> None:
        """`states` has collected before."""
        self._partitions = partitions
        self._states = states
        self._totals = NamedTotals(topic_names(settings), len(_COUNTERS), _TRAFFIC)
        # What partitions and topics had counted at the last scrape. A topic that is made anew is another object.
        self._former: dict[Partition | Held, tuple[int, ...]] = {}

    def collect(self, exposition: Exposition) -> Steps:
        tally = Tally(limits.METRICS_PER_SLICE)
        seen: dict[Partition | Held, tuple[int, ...]] = {}
        news: dict[str, list[int]] = {}
        sizes: dict[str, list[int]] = {}
        producer_ids = max_lag = 0
        for held in tuple(self._partitions.by_name.values()):
            new, size = [0] * len(_COUNTERS), [0] * len(_GAUGES)
            failed = held.failed_produces, held.failed_fetches
            self._add_news(held, (0, 0, 0, *failed, *failed, 0), seen, new)
            for partition in tuple(held.opened.values()):
                added = self._add_news(partition, _counted(partition), seen, new)
                new[_RECORDS_OUT] += _records_in(partition, added[_BYTES_OUT])
                max_lag = max(max_lag, _lag(partition))
                add_to(size, _sizes(partition))
                producer_ids += len(partition.log.producers)
                if tally.is_full():
                    yield
            news[held.topic.name] = new
            sizes[held.topic.name] = [*size, *self._states.by_topic.get(held.topic.name, _NOTHING)]
            if tally.is_full():
                yield
        self._former = seen
        exposition.add(PRODUCER_IDS, producer_ids)
        exposition.add(MAX_LAG, max_lag)
        totals = self._totals
        yield from totals.add(news)
        other = [0] * (len(_GAUGES) + len(_OF_PARTITIONS))
        for topic in news.keys() - totals.named.keys():
            add_to(other, sizes[topic])
            if tally.is_full():
                yield
        for topic, counted_ in totals.named.items():
            _tell(exposition, topic, counted_, sizes[topic])
        if len(totals.named) < len(news) or any(totals.other):
            _tell(exposition, OTHER, totals.other, other)

    def _add_news(
        self,
        counter: Partition | Held,
        counted: tuple[int, ...],
        seen: dict[Partition | Held, tuple[int, ...]],
        new: list[int],
    ) -> Sequence[int]:
        """Add what was counted since the last scrape, and return it."""
        seen[counter] = counted
        before = self._former.get(counter)
        added = counted if before is None else [now - then for now, then in zip(counted, before, strict=True)]
        add_to(new, added)
        return added


def _counted(partition: Partition) -> tuple[int, ...]:
    return (
        partition.received_records,
        partition.received_bytes,
        partition.sent_bytes,
        partition.produce_requests,
        partition.fetch_requests,
        0,
        0,
        0,
    )


def _records_in(partition: Partition, size_bytes: int) -> int:
    """How many records so many bytes of a partition have, by their mean size there."""
    log = partition.log
    return round(size_bytes * (log.next_offset - log.log_start_offset) / log.size_bytes) if log.size_bytes else 0


def _lag(partition: Partition) -> int:
    """How far a follower is behind its leader."""
    return 0 if partition.is_leader else partition.told_high_watermark - partition.log.next_offset


def _sizes(partition: Partition) -> tuple[int, ...]:
    log = partition.log
    unstable = partition.high_watermark - partition.last_stable_offset if partition.is_leader else 0
    return log.size_bytes, len(log.segments), log.log_start_offset, log.next_offset, unstable


def _tell(exposition: Exposition, topic: str, totals: Sequence[int], sizes: Sequence[int]) -> None:
    for metric, value in zip((*_COUNTERS, *_GAUGES, *_OF_PARTITIONS), (*totals, *sizes), strict=True):
        exposition.add(metric, value, topic)
