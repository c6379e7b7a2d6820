"""Fetches: reading the partitions of a node for clients and other brokers.

- `sessions`: the partitions of consumers and followers, remembered between their fetches;
- `engine`: attempts, waits and answers, the same for all readers, share groups included;
- `consumers`, `followers`: the policies of the two kinds of readers that send Fetch requests;
- `spark_readers`: how far Spark's own connector has read.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.cluster.state import ClusterState
from ottla.model.settings.node import MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS
from ottla.server.fetch.answers import Reachable
from ottla.server.fetch.consumer_reads import ConsumerReads, Consumers
from ottla.server.fetch.engine import Fetch, FetchEngine
from ottla.server.fetch.fetch_sessions import FetchSession, FetchSessions
from ottla.server.fetch.follower_reads import Followers, SendQuota
from ottla.server.fetch.spark_readers import EXECUTOR, Commit, SparkReaders
from ottla.server.fetch.wide_fetch import WideFetch, is_wide
from ottla.server.loop.later import Answer
from ottla.server.loop.runtime import Runtime
from ottla.server.quotas.fetch_quota import FetchQuota
from ottla.server.settings.configs import Configs
from ottla.server.storage.storage import Storage
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse


class Fetches:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        storage: Storage,
        state: Callable[[], ClusterState],
        quota: SendQuota,
        commit: Commit,
    ) -> None:
        """`quota` bounds the bytes sent to followers that are not in sync; `commit` stores offsets for a group."""
        slots = configs.broker[MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS]
        self.sessions = FetchSessions(slots, runtime.rng)
        self.engine = FetchEngine(storage.partitions, storage.waiters, storage.cold)
        self.consumers = Consumers(self.engine, self.sessions, configs, state, runtime.steady_ms)
        self.followers = Followers(self.engine, self.sessions, storage.watches, quota, state, runtime.steady_ms)
        self.spark_readers = SparkReaders(configs, state, commit)
        self._slices = runtime.slices

    def answer_consumer(
        self,
        request: FetchRequest,
        session: FetchSession | None,
        by_id: bool,
        version: int,
        client_id: str,
        reachable: Reachable,
        readable: Callable[[str], bool] | None = None,
        client_quota: FetchQuota | None = None,
    ) -> Answer[FetchResponse]:
        """Return the answer to a consumer; `session` is that of an incremental fetch, None for a full one.

        `readable` tells whether the consumer may read a topic; None if it may read all. `client_quota` is None if
        no client has a quota.
        """
        reads = ConsumerReads(self.consumers, request, session, by_id, version, reachable, readable, client_quota)
        if EXECUTOR in client_id:
            self.spark_readers.noted(client_id, reads.asked)
        max_bytes, min_bytes, wait_ms = request.max_bytes, request.min_bytes, request.max_wait_ms
        if client_quota is not None:
            max_bytes = min(max_bytes, client_quota.max_bytes)
        if is_wide(reads, self.engine.partitions):
            return WideFetch(self.engine, reads, max_bytes, min_bytes, wait_ms).answer_in(self._slices)
        return Fetch(self.engine, reads, max_bytes, min_bytes, wait_ms).answer()
