"""NodeMetrics: the metrics of a node and the endpoint that tells them: /metrics, /healthz and /readyz.

Metrics are pulled: a scrape reads the rooms, in slices (`loop/slices.py`), so that it holds up no request however many
partitions there are. Only what cannot be read afterwards is counted as it happens: requests and their times
(`server/api/request_counts.py`), changes of partitions, the delay of the event loop. Scrapes that come together share
one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from http import HTTPStatus

from ottla.model import limits
from ottla.observe.metrics.catalogue import process as told
from ottla.observe.metrics.exposition import CONTENT_TYPE, Exposition
from ottla.server.api.request_counts import RequestCounts
from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.stalls import Stalls
from ottla.server.metrics.changes import ChangeCounts
from ottla.server.metrics.collector import Collector
from ottla.server.metrics.connections import ConnectionsCollector
from ottla.server.metrics.coordinators import CoordinatorsCollector
from ottla.server.metrics.health import Health
from ottla.server.metrics.http_endpoint import HttpAnswer, HttpEndpoint
from ottla.server.metrics.loop_watch import LoopWatch
from ottla.server.metrics.partitions import PartitionsCollector
from ottla.server.metrics.process import tell_build, tell_process
from ottla.server.metrics.quorum import QuorumCollector
from ottla.server.metrics.requests import RequestsCollector
from ottla.server.metrics.topics import TopicsCollector
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.ports.process_usage import process_usage, thread_cpu
from ottla.server.ports.sockets import Net
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.quotas.client_quotas import ClientQuotas
from ottla.server.security.logins import Logins
from ottla.server.settings.configs import Configs
from ottla.server.storage.storage import Storage

_JSON = "application/json"


class NodeMetrics:
    """`requests` counts what the node's listeners serve; `health` tells whether it is ready."""

    def __init__(
        self,
        place: tuple[str, int],
        runtime: Runtime,
        configs: Configs,
        stalls: Stalls,
        is_open: Callable[[], bool],
        *,
        storage: Storage,
        member: QuorumMember,
        coordinators: CoordinatorsOnDemand,
        connections: ConnectionLimits,
        logins: Logins,
        quotas: ClientQuotas,
        listeners: Sequence[str],
        is_broker: bool,
        is_controller: bool,
    ) -> None:
        """`is_open` returns whether all listeners of the node accept connections."""
        self.requests = RequestCounts()
        self.health = Health(storage, member.metadata, is_open, is_broker=is_broker)
        self._place = place
        self._runtime = runtime
        self._metadata = member.metadata
        self._begun_s = runtime.clock_s()
        self._scrapes = 0
        self._scrape: asyncio.Future[Exposition] | None = None  # the one that is under way
        self._endpoint: HttpEndpoint | None = None
        self._changes = ChangeCounts(member.metadata)
        self._loop_watch = LoopWatch(runtime, stalls, thread_cpu())
        self._requests = RequestsCollector(self.requests, quotas)
        self._collectors: tuple[Collector, ...] = (
            self._changes.collect,
            PartitionsCollector(storage, member.metadata, is_controller=is_controller).collect,
            QuorumCollector(member).collect,
            self._requests.collect,
            TopicsCollector(storage.partitions, configs.broker).collect,
            ConnectionsCollector(connections, logins, listeners).collect,
            CoordinatorsCollector(coordinators, runtime.now_ms).collect,
            self._loop_watch.collect,
        )

    @property
    def address(self) -> tuple[str, int] | None:
        """Where the endpoint listens."""
        return None if self._endpoint is None else self._endpoint.address

    def start(self, net: Net) -> None:
        resources = {"/metrics": self._metrics, "/healthz": self._alive, "/readyz": self._ready}
        self._endpoint = HttpEndpoint(net.listen(*self._place), self._runtime.loop, resources)
        self._loop_watch.start()

    async def close(self) -> None:
        self._loop_watch.close()
        self._changes.close()
        if self._endpoint is not None:
            await self._endpoint.close()

    def turn(self) -> None:
        """Begin another interval of the quantiles; called every `METRICS_WINDOW_MS`."""
        self._requests.turn()
        self._loop_watch.delays.turn()

    async def collect(self) -> Exposition:
        """Return the samples of now. Who asks during a scrape gets that one."""
        if self._scrape is None:
            self._scrape = self._runtime.slices.begin(self._collect())
            self._scrape.add_done_callback(self._collected)
        return await asyncio.shield(self._scrape)

    def _collected(self, _: asyncio.Future[Exposition]) -> None:
        self._scrape = None

    async def _collect(self) -> Exposition:
        exposition = Exposition(limits.METRICS_SAMPLES_MAX)
        usage = await self._runtime.in_worker(process_usage)
        for collect in self._collectors:
            await self._runtime.slices.finish(collect(exposition))
            await self._runtime.slices.turn()
        self._scrapes += 1
        tell_process(usage, exposition)
        tell_build(self._metadata.node_id, self._metadata.cluster_id, exposition)
        exposition.add(told.UPTIME, self._runtime.clock_s() - self._begun_s)
        exposition.add(told.SCRAPES, self._scrapes)
        exposition.add(told.SAMPLES_LEFT_OUT, exposition.left_out)
        return exposition

    # --- what the endpoint answers

    async def _metrics(self) -> HttpAnswer:
        exposition = await self.collect()
        chunks = []
        for chunk in exposition.chunks():
            chunks.append(chunk)
            await self._runtime.slices.turn()
        return HttpAnswer(HTTPStatus.OK, chunks, CONTENT_TYPE)

    async def _alive(self) -> HttpAnswer:
        """Answer that the event loop turns: else there would be no answer."""
        return HttpAnswer(HTTPStatus.OK, (b"ok\n",))

    async def _ready(self) -> HttpAnswer:
        problems = self.health.problems()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
        told_ = {"ready": not problems, "reasons": problems}
        return HttpAnswer(status, (json.dumps(told_).encode() + b"\n",), _JSON)
