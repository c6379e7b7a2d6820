"""Replication quotas: how fast replicas that are catching up may be copied, so that a reassignment does not starve
clients.

Kafka's rules: a rate per broker (`…throttled.rate`) for the replicas a topic lists (`…throttled.replicas`, as
`partition:broker` pairs or `*`). All bytes of these replicas count; only replicas that are not in sync are throttled.
The rate is measured over a window of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.cluster.entities import Change, ConfigChanged
from ottla.model.resources import ResourceType
from ottla.model.setting import Setting
from ottla.model.settings.metrics import (
    ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM,
    ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS,
    REPLICATION_QUOTA_WINDOW_NUM,
    REPLICATION_QUOTA_WINDOW_SIZE_SECONDS,
)
from ottla.model.settings.replication import (
    FOLLOWER_REPLICATION_THROTTLED_RATE,
    LEADER_REPLICATION_THROTTLED_RATE,
    REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND,
)
from ottla.model.topic_settings import FOLLOWER_REPLICATION_THROTTLED_REPLICAS, LEADER_REPLICATION_THROTTLED_REPLICAS
from ottla.security.quotas.rates import SimpleRate, Window
from ottla.server.settings.configs import Configs

_ALL = "*"
# The pause of a partition whose quota is used up; then the rate is checked again.
_PAUSE_MS = 100


class Quota:
    """One of the rates of a broker. Without a limit (None) nothing is counted."""

    def __init__(
        self, configs: Configs, now_ms: Callable[[], int], limit: Setting[int | None], rate: SimpleRate
    ) -> None:
        self._configs = configs
        self._now_ms = now_ms
        self._limit = limit
        self._rate = rate
        self.limit: int | None = None
        self.configure()

    def configure(self) -> None:
        self.limit = self._configs.broker[self._limit]

    def used(self, size_bytes: int) -> None:
        if self.limit is not None:
            self._rate.record(size_bytes, self._now_ms())

    @property
    def is_exceeded(self) -> bool:
        return self.limit is not None and self._rate.per_second(self._now_ms()) > self.limit


class ReplicaQuota(Quota):
    """A quota for the replicas that topics list."""

    def __init__(
        self,
        configs: Configs,
        now_ms: Callable[[], int],
        limit: Setting[int | None],
        throttled: Setting[tuple[str, ...]],
        is_in_sync: Callable[[str, int], bool],
    ) -> None:
        self._throttled = throttled
        self._is_in_sync = is_in_sync
        self._listed: dict[str, frozenset[int] | None] = {}  # None: all partitions
        settings = configs.broker
        sample_ms = settings[REPLICATION_QUOTA_WINDOW_SIZE_SECONDS] * 1000
        window = Window(settings[REPLICATION_QUOTA_WINDOW_NUM], sample_ms)
        super().__init__(configs, now_ms, limit, SimpleRate(window))

    def configure(self) -> None:
        super().configure()
        self._listed.clear()

    def is_throttled(self, topic: str, index: int) -> bool:
        if self.limit is None:
            return False
        if topic not in self._listed:
            self._listed[topic] = _parse(self._configs.topic(topic)[self._throttled], self._configs.node_id)
        listed = self._listed[topic]
        return listed is None or index in listed

    def _moved(self, topic: str, index: int, size_bytes: int) -> None:
        if self.limit is not None and self.is_throttled(topic, index):
            self.used(size_bytes)


class FollowerQuota(ReplicaQuota):
    """The quota of this broker's own replicas that catch up."""

    def received(self, topic: str, index: int, size_bytes: int) -> None:
        self._moved(topic, index, size_bytes)

    def pause_ms(self) -> int:
        return _PAUSE_MS

    def holds_back(self, topic: str, index: int) -> bool:
        return (
            self.limit is not None
            and self.is_throttled(topic, index)
            and self.is_exceeded
            and not self._is_in_sync(topic, index)
        )


class LeaderQuota(ReplicaQuota):
    """The quota of other brokers' replicas that catch up with this one; the caller knows that the follower is not in
    sync.
    """

    def sent(self, topic: str, index: int, size_bytes: int) -> None:
        self._moved(topic, index, size_bytes)

    def holds_back(self, topic: str, index: int) -> bool:
        return self.limit is not None and self.is_throttled(topic, index) and self.is_exceeded


class Quotas:
    def __init__(self, configs: Configs, now_ms: Callable[[], int], is_in_sync: Callable[[str, int], bool]) -> None:
        self.leader = LeaderQuota(
            configs,
            now_ms,
            LEADER_REPLICATION_THROTTLED_RATE,
            LEADER_REPLICATION_THROTTLED_REPLICAS,
            is_in_sync,
        )
        self.follower = FollowerQuota(
            configs,
            now_ms,
            FOLLOWER_REPLICATION_THROTTLED_RATE,
            FOLLOWER_REPLICATION_THROTTLED_REPLICAS,
            is_in_sync,
        )
        settings = configs.broker
        sample_ms = settings[ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS] * 1000
        rate = SimpleRate(Window(settings[ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM], sample_ms))
        self.log_dirs = Quota(configs, now_ms, REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND, rate)

    def follow(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, ConfigChanged) and change.resource.type in (ResourceType.BROKER, ResourceType.TOPIC):
                self.configure()
                return

    def configure(self) -> None:
        """Read the current settings."""
        for quota in (self.leader, self.follower, self.log_dirs):
            quota.configure()


def _parse(listed: Iterable[str] | None, node_id: int) -> frozenset[int] | None:
    """Return the partitions that are listed with this broker in a list like `0:1,0:2,3:1`; None for `*`."""
    entries = [entry.strip() for entry in listed or ()]
    if _ALL in entries:
        return None
    found = []
    for entry in entries:
        partition, _, broker = entry.partition(":")
        if broker == str(node_id) and partition.isdigit():
            found.append(int(partition))
    return frozenset(found)
