"""OpenFailures: partitions that cannot be opened, for one line of the log per data directory."""

from __future__ import annotations

import logging
from typing import NamedTuple

from ottla.model.ids import TopicPartition
from ottla.server.storage.partitions import Partitions

log = logging.getLogger(__name__)


class _Failure(NamedTuple):
    """The first partition of a directory that failed, its reason, and how many failed in all."""

    partition: TopicPartition
    reason: str | None
    times: int


class OpenFailures:
    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._by_path: dict[str, _Failure] = {}

    def add(self, partition: TopicPartition, reason: str | None) -> None:
        directory = self._partitions.directory_of(partition)
        path = "no directory" if directory is None else str(directory.path)
        first = self._by_path.get(path, _Failure(partition, reason, 0))
        self._by_path[path] = first._replace(times=first.times + 1)

    def tell(self) -> None:
        """Log the failures so far, and forget them."""
        found, self._by_path = self._by_path, {}
        for path, (partition, reason, times) in found.items():
            if times == 1:
                log.error("%s cannot be opened: %s", partition, reason)
            else:
                log.error("%s: %d partitions cannot be opened, the first is %s: %s", path, times, partition, reason)
