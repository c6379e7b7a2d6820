"""StoredBytes: how many bytes the tenants store in the cluster, as this node knows it.

Rules:
- Every partition of a tenant counts once: with the size of this node's log if this node leads it, else with the size
  that its leader told last. So a new leader changes nothing, whoever counted the partition before.
- Other brokers are asked all at the same time, and not while this node looks at its own partitions: one that does not
  answer delays nobody, and its partitions count with their last size.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from itertools import islice

from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.tenancy.tenants import tenant_in
from ottla.server.loop.runtime import Runtime
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.storage.storage import Storage
from ottla.server.tenants.traffic import Traffic
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest

_Key = tuple[str, int]  # a topic and a partition


class StoredBytes:
    def __init__(
        self, runtime: Runtime, storage: Storage, requests: PeerRequests, metadata: MetadataHost, traffic: Traffic
    ) -> None:
        self._runtime = runtime
        self._storage = storage
        self._requests = requests
        self._metadata = metadata
        self._traffic = traffic
        self._sizes: dict[_Key, int] = {}  # the last known size of each partition of a tenant with a storage limit
        self._led_elsewhere: dict[int, list[_Key]] = {}  # by leader

    async def count(self, tenants: Collection[str], limited: Collection[str]) -> Counter[str]:
        """Look at the partitions of `tenants` on this node, also for their traffic. Return the bytes of those that have
        a storage limit.
        """
        used: Counter[str] = Counter()
        elsewhere: dict[int, list[_Key]] = {}
        known: set[_Key] = set()
        visited = 0
        for name in tuple(self._metadata.state.topics) if tenants else ():
            visited += 1
            tenant = tenant_in(name)
            topic = self._metadata.state.topics.get(name) if tenant in tenants else None
            for each in () if topic is None else topic.partitions:
                visited += 1
                partition = self._storage.partitions.if_opened(name, each.index)
                if partition is not None:
                    self._traffic.see(tenant, partition)
                if tenant not in limited:
                    continue
                key = name, each.index
                known.add(key)
                if each.leader != self._metadata.node_id:
                    elsewhere.setdefault(each.leader, []).append(key)
                elif partition is not None:
                    self._sizes[key] = partition.log.size_bytes
                used[tenant] += self._sizes.get(key, 0)
            if visited >= limits.PARTITIONS_VISITED_PER_TURN:
                visited = 0
                await self._runtime.slices.turn()
        for gone in self._sizes.keys() - known:
            del self._sizes[gone]
        self._led_elsewhere = elsewhere
        return used

    async def ask(self) -> None:
        """Ask the other brokers for the sizes of the partitions that they lead."""
        # A partition without a leader has the leader -1.
        await asyncio.gather(*(self._ask(node, led) for node, led in self._led_elsewhere.items() if node >= 0))

    async def _ask(self, node: int, led: list[_Key]) -> None:
        left = iter(led)
        while some := list(islice(left, limits.TENANT_PARTITIONS_PER_QUESTION)):
            topics: dict[str, list[int]] = {}
            for name, index in some:
                topics.setdefault(name, []).append(index)
            wanted = [
                DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=indexes)
                for name, indexes in topics.items()
            ]
            answer = await self._requests.ask(node, DescribeLogDirsRequest(topics=wanted), "tenants")
            if isinstance(answer, ApiError) or answer.error_code:
                return
            for topic in (each for result in answer.results for each in result.topics):
                for each in topic.partitions:
                    if not each.is_future_key:
                        self._sizes[topic.name, each.partition_index] = each.partition_size
