"""Partitions as their leaders see them, and as the controllers do; read from the metadata."""

from __future__ import annotations

from ottla.cluster.entities import NO_LEADER
from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.observe.metrics.catalogue import partitions as told
from ottla.observe.metrics.catalogue import quorum as of_cluster
from ottla.observe.metrics.exposition import Exposition
from ottla.server.loop.slices import Steps, Tally
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.storage.storage import Storage


class PartitionsCollector:
    def __init__(self, storage: Storage, metadata: MetadataHost, *, is_controller: bool) -> None:
        self._storage = storage
        self._metadata = metadata
        self._is_controller = is_controller
        self.by_topic: dict[str, tuple[int, ...]] = {}  # of partitions led here, at the last scrape: `of_topic`

    def collect(self, exposition: Exposition) -> Steps:
        counts = _Counts(self._metadata.node_id)
        by_topic: dict[str, tuple[int, ...]] = {}
        tally = Tally(limits.METRICS_PER_SLICE)
        state, config_of = self._metadata.state, self._storage.partitions.config_of
        for topic in tuple(state.topics.values()):
            min_isr = config_of(topic.name).min_insync_replicas
            before = counts.of_topic()
            for partition in tuple(topic.partitions):
                counts.add(partition.replicas, partition.isr, partition.leader, partition.adding, min_isr)
                counts.reassigning += partition.leader == counts.node_id and partition.moving
                if tally.is_full():
                    yield
            by_topic[topic.name] = tuple(now - then for now, then in zip(counts.of_topic(), before, strict=True))
        self.by_topic = by_topic
        self._tell(counts, exposition)
        if self._is_controller:
            _tell_of_cluster(counts, state, exposition)
        yield

    def _tell(self, counts: _Counts, exposition: Exposition) -> None:
        offline = [each for each in self._storage.directories if each.offline]
        exposition.add(told.PARTITION_COUNT, counts.held)
        exposition.add(told.LEADER_COUNT, counts.led)
        exposition.add(told.UNDER_REPLICATED, counts.under_replicated)
        exposition.add(told.UNDER_MIN_ISR, counts.under_min_isr)
        exposition.add(told.AT_MIN_ISR, counts.at_min_isr)
        exposition.add(told.REASSIGNING, counts.reassigning)
        exposition.add(told.OFFLINE_DIRECTORIES, len(offline))
        exposition.add(told.OFFLINE_REPLICAS, sum(len(each.partitions) for each in offline))


class _Counts:
    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.held = self.led = self.under_replicated = self.under_min_isr = self.at_min_isr = self.reassigning = 0
        self.replicas = self.in_sync = 0  # of partitions led here
        self.all = self.leaderless = self.not_preferred = 0

    def of_topic(self) -> tuple[int, ...]:
        """What is told of each topic, in the order of `TopicsCollector`."""
        return self.replicas, self.in_sync, self.under_replicated, self.under_min_isr, self.at_min_isr

    def add(
        self, replicas: tuple[int, ...], isr: tuple[int, ...], leader: int, adding: tuple[int, ...], min_isr: int
    ) -> None:
        self.all += 1
        self.leaderless += leader == NO_LEADER
        self.not_preferred += bool(replicas) and leader != replicas[0]
        self.held += self.node_id in replicas
        if leader != self.node_id:
            return
        self.led += 1
        self.replicas += len(replicas)
        self.in_sync += len(isr)
        # A replica that is being added is missing for a good reason.
        self.under_replicated += any(each not in isr and each not in adding for each in replicas)
        least = min(min_isr, len(replicas))
        self.under_min_isr += len(isr) < least
        self.at_min_isr += len(isr) == least


def _tell_of_cluster(counts: _Counts, state: ClusterState, exposition: Exposition) -> None:
    fenced = sum(1 for broker in state.brokers.values() if broker.fenced)
    exposition.add(of_cluster.OFFLINE_PARTITIONS, counts.leaderless)
    exposition.add(of_cluster.PREFERRED_IMBALANCE, counts.not_preferred)
    exposition.add(of_cluster.TOPIC_COUNT, len(state.topics))
    exposition.add(of_cluster.PARTITIONS_OF_CLUSTER, counts.all)
    exposition.add(of_cluster.ACTIVE_BROKERS, len(state.brokers) - fenced)
    exposition.add(of_cluster.FENCED_BROKERS, fenced)
