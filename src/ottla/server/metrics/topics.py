"""Topics: records in and out since the node started, and what their logs hold.

Partitions count while they are open, and a replica that is removed takes its counts along. So each scrape adds what
came since the last one to totals that only grow.

As many topics as `ottla.metrics.topics.max` says have totals of their own, the busiest first. Once a topic has them it
keeps them: if no more can be added, a topic without traffic since the last scrape makes room for a busier one. All
other topics share the totals of `(other)`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from ottla.model import limits
from ottla.model.config import Config
from ottla.model.settings.own import (
    OTTLA_METRICS_TOPICS_EXCLUDE,
    OTTLA_METRICS_TOPICS_INCLUDE,
    OTTLA_METRICS_TOPICS_MAX,
)
from ottla.observe.metrics.catalogue import topics as told
from ottla.observe.metrics.exposition import Exposition
from ottla.replica.partition import Partition
from ottla.server.loop.slices import Steps, Tally
from ottla.server.storage.partitions import Held, Partitions

OTHER = "(other)"
_COUNTERS = (told.MESSAGES_IN, told.BYTES_IN, told.BYTES_OUT, told.FAILED_PRODUCE, told.FAILED_FETCH)
_GAUGES = (told.LOG_SIZE, told.LOG_SEGMENTS, told.LOG_START, told.LOG_END, told.UNSTABLE)
_TRAFFIC = (1, 2)  # of the counters, those that say how busy a topic is: the bytes


class TopicsCollector:
    def __init__(self, partitions: Partitions, settings: Config) -> None:
        self._partitions = partitions
        self._named_max = settings[OTTLA_METRICS_TOPICS_MAX]
        self._include = settings[OTTLA_METRICS_TOPICS_INCLUDE]
        self._exclude = settings[OTTLA_METRICS_TOPICS_EXCLUDE]
        self._named: dict[str, list[int]] = {}  # topic → its totals, as `_COUNTERS`
        self._other = [0] * len(_COUNTERS)
        # What partitions and topics had counted at the last scrape. A topic that is made anew is another object.
        self._former: dict[Partition | Held, tuple[int, ...]] = {}

    def collect(self, exposition: Exposition) -> Steps:
        tally = Tally(limits.METRICS_PER_SLICE)
        seen: dict[Partition | Held, tuple[int, ...]] = {}
        news: dict[str, list[int]] = {}
        sizes: dict[str, list[int]] = {}
        for held in tuple(self._partitions.by_name.values()):
            new, size = [0] * len(_COUNTERS), [0] * len(_GAUGES)
            self._add_news(held, (0, 0, 0, held.failed_produces, held.failed_fetches), seen, new)
            for partition in tuple(held.opened.values()):
                counted = partition.received_records, partition.received_bytes, partition.sent_bytes, 0, 0
                self._add_news(partition, counted, seen, new)
                _add(size, _sizes(partition))
                if tally.is_full():
                    yield
            news[held.topic.name], sizes[held.topic.name] = new, size
            if tally.is_full():
                yield
        self._former = seen
        self._choose(news)
        other = [0] * len(_GAUGES)
        for topic, new in news.items():
            totals = self._named.get(topic)
            _add(self._other if totals is None else totals, new)
            if totals is None:
                _add(other, sizes[topic])
            if tally.is_full():
                yield
        for topic, totals in self._named.items():
            _tell(exposition, topic, totals, sizes[topic])
        if len(self._named) < len(news) or any(self._other):
            _tell(exposition, OTHER, self._other, other)

    def _add_news(
        self,
        counter: Partition | Held,
        counted: tuple[int, ...],
        seen: dict[Partition | Held, tuple[int, ...]],
        new: list[int],
    ) -> None:
        """Add what was counted since the last scrape."""
        seen[counter] = counted
        before = self._former.get(counter)
        _add(new, counted if before is None else [now - then for now, then in zip(counted, before, strict=True)])

    def _choose(self, news: dict[str, list[int]]) -> None:
        """Decide which topics are told one by one from now on."""
        for gone in self._named.keys() - news.keys():
            del self._named[gone]
        busy = [topic for topic in news if topic not in self._named and self._may_be_named(topic)]
        busy.sort(key=lambda topic: (-_traffic(news[topic]), topic))
        idle = [topic for topic in self._named if not _traffic(news[topic])]
        for topic in busy:
            if len(self._named) >= self._named_max:
                if not (idle and _traffic(news[topic])):
                    return
                del self._named[idle.pop()]  # what it had is no news of the others: they go on without it
            self._named[topic] = [0] * len(_COUNTERS)

    def _may_be_named(self, topic: str) -> bool:
        return any(fnmatchcase(topic, each) for each in self._include) and not any(
            fnmatchcase(topic, each) for each in self._exclude
        )


def _sizes(partition: Partition) -> tuple[int, ...]:
    log = partition.log
    unstable = partition.high_watermark - partition.last_stable_offset if partition.is_leader else 0
    return log.size_bytes, len(log.segments), log.log_start_offset, log.next_offset, unstable


def _add(totals: list[int], more: tuple[int, ...] | list[int]) -> None:
    for at, value in enumerate(more):
        totals[at] += value


def _traffic(new: list[int]) -> int:
    return sum(new[at] for at in _TRAFFIC)


def _tell(exposition: Exposition, topic: str, totals: list[int], sizes: list[int]) -> None:
    for metric, value in zip((*_COUNTERS, *_GAUGES), (*totals, *sizes), strict=True):
        exposition.add(metric, value, topic)
