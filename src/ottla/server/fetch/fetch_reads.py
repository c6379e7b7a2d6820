"""FetchReads: the common part of the policies for Fetch requests, of consumers and of followers: how partitions are
found by the topic's id or name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.replica.partition import Partition
from ottla.server.fetch.engine import FetchEngine, Reads
from ottla.server.fetch.fetch_sessions import AskedPartition, PartitionData
from ottla.wire.messages.records.fetch import FetchResponse


class FetchReads(Reads[AskedPartition, PartitionData, FetchResponse]):
    __slots__ = ("_find", "by_id")

    def __init__(self, engine: FetchEngine, by_id: bool) -> None:
        """`by_id` says whether the request names topics by their ids."""
        self.urgent = False
        self.by_id = by_id
        partitions = engine.partitions
        self._find: Callable[[Any, int], Partition] = partitions.find_by_id if by_id else partitions.find

    def find(self, asked: AskedPartition) -> Partition:
        return self._find(asked.topic, asked.index)
