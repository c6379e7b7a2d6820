"""NodeMetrics: the metrics of a node, and how they are told: an endpoint with /metrics, /healthz and /readyz, or pushes
to an OpenTelemetry collector.

Metrics are pulled: a scrape reads the rooms, in slices (`loop/slices.py`), so that it holds up no request however many
partitions there are. Only what cannot be read afterwards is counted as it happens: requests and their times
(`server/api/request_counts.py`), changes of partitions, the delay of the event loop. Scrapes that come together share
one.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus

from ottla.model import limits
from ottla.observe.metrics.catalogue import process as told
from ottla.observe.metrics.exposition import CONTENT_TYPE, Exposition
from ottla.security.principal import Principal
from ottla.server.api.request_counts import RequestCounts
from ottla.server.metrics.changes import ChangeCounts
from ottla.server.metrics.clients import ClientsCollector
from ottla.server.metrics.collector import Collector
from ottla.server.metrics.connections import ConnectionsCollector
from ottla.server.metrics.coordinators import CoordinatorsCollector
from ottla.server.metrics.health import Health
from ottla.server.metrics.http_endpoint import EndpointPage, HttpAnswer, HttpEndpoint, HttpRequest
from ottla.server.metrics.lag.figures import group_names
from ottla.server.metrics.lag.lags import GroupLags
from ottla.server.metrics.lag.unread import UnreadRecords
from ottla.server.metrics.loop_watch import LoopWatch
from ottla.server.metrics.otel import OtelCollector
from ottla.server.metrics.partitions import PartitionsCollector
from ottla.server.metrics.process import tell_build, tell_process
from ottla.server.metrics.quorum import QuorumCollector
from ottla.server.metrics.requests import RequestsCollector
from ottla.server.metrics.share_groups import ShareGroupsCollector
from ottla.server.metrics.sources import MetricSources
from ottla.server.metrics.storage import StorageCollector
from ottla.server.metrics.topics import TopicsCollector
from ottla.server.ports.process_usage import process_usage, thread_busy
from ottla.server.ports.sockets import Net
from ottla.server.security.logins import TLS
from ottla.server.settings.metrics_listener import METRICS, MetricsPlace
from ottla.telemetry.export.points import Times, pushes_of

_JSON = "application/json"


class NodeMetrics:
    """`requests` counts what the node's listeners serve; `health` tells whether it is ready."""

    def __init__(self, place: MetricsPlace | None, of: MetricSources) -> None:
        """`place` is where the endpoint listens; None: it is off."""
        runtime, settings, metadata = of.runtime, of.configs.broker, of.member.metadata
        self.requests = RequestCounts()
        self.health = Health(of.storage, metadata, of.is_open, is_broker=of.is_broker)
        self._place = place
        self._security = of.security
        self._configs = of.configs
        self._otel = of.otel
        self._runtime = runtime
        self._metadata = metadata
        self._begun_s = runtime.clock_s()
        self._begun_ms = runtime.now_ms()
        self._scrapes = 0
        self._scrape: asyncio.Future[Exposition] | None = None  # the one that is under way
        self._endpoint: HttpEndpoint | None = None
        self._changes = ChangeCounts(metadata)
        self._loop_watch = LoopWatch(runtime, of.stalls, thread_busy())
        self._requests = RequestsCollector(self.requests, of.quotas)
        self._storage = StorageCollector(of)
        groups = group_names(settings)
        unread = UnreadRecords(runtime, of.storage, metadata, of.peer_requests)
        states = PartitionsCollector(of.storage, metadata, is_controller=of.is_controller)
        self.lags = GroupLags(runtime, of.coordinators, metadata, unread, groups)
        self._collectors: tuple[Collector, ...] = (
            self._changes.collect,
            states.collect,
            QuorumCollector(of.member).collect,
            self._requests.collect,
            TopicsCollector(of.storage.partitions, settings, states).collect,
            self._storage.collect,
            ConnectionsCollector(of.connections, of.security.logins, of.listeners).collect,
            CoordinatorsCollector(of.coordinators, runtime.now_ms).collect,
            self.lags.collect,
            ShareGroupsCollector(of.coordinators, groups).collect,
            self._loop_watch.collect,
            OtelCollector(of.otel).collect,
            ClientsCollector(
                of.telemetry, runtime.steady_ms
            ).collect,  # last: what clients push must not leave out what the node tells
        )

    @property
    def place(self) -> MetricsPlace | None:
        """Where the endpoint listens."""
        if self._place is None or self._endpoint is None:
            return None
        return MetricsPlace(*self._endpoint.address, self._place.has_tls)

    def start(self, net: Net) -> None:
        if self._place is not None:
            self._endpoint = self._listen(self._place, net)
        self._loop_watch.start()

    def _listen(self, place: MetricsPlace, net: Net) -> HttpEndpoint:
        pages = {
            "/metrics": EndpointPage(self._metrics),
            "/healthz": EndpointPage(self._alive, is_health=True),
            "/readyz": EndpointPage(self._ready, is_health=True),
        }
        tls = self._security.listener(METRICS).tls if place.has_tls else None
        if tls is not None:
            from ottla.server.metrics.gate import MetricsGate

            gate = MetricsGate(self._runtime, self._configs, self._security, self._security.new_credentials())
            # Anybody may ask whether the node is ready, as balancers do; the reasons are for users.
            pages |= {
                "/metrics": EndpointPage(self._metrics, gate.refused),
                "/readyz": EndpointPage(self._whether_ready, is_health=True),
                "/readyz/reasons": EndpointPage(self._ready, gate.refused),
            }
        return HttpEndpoint(net.listen(place.host, place.port), self._runtime, pages, tls, self._login)

    async def close(self) -> None:
        self._loop_watch.close()
        self.lags.close()
        self._changes.close()
        if self._endpoint is not None:
            await self._endpoint.close()

    def turn(self) -> None:
        """Begin another interval of the quantiles; called every `METRICS_WINDOW_MS`."""
        self._requests.turn()
        self._storage.turn()
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

    async def push(self) -> None:
        """Push the samples of now to the collector, if it did not fail too recently."""
        otel = self._otel
        assert otel is not None, "it is on"
        if not otel.metrics.may_push:
            return
        exposition = await self.collect()
        times = Times(self._begun_ms, self._runtime.now_ms())
        for body in await self._runtime.slices.finish(pushes_of(exposition, otel.resource, times)):
            if (await otel.metrics.push(body)).is_for_later:
                return

    def _login(self, host: str, principal: Principal | None, reason: str) -> None:
        """Note a client whose certificate names it, or that was refused in its handshake."""
        if principal is None:
            self._security.logins.failed(METRICS, TLS, host, "", reason)
        else:
            self._security.logins.succeeded(METRICS, TLS, host, str(principal))

    # --- what the endpoint answers

    async def _metrics(self, _: HttpRequest) -> HttpAnswer:
        exposition = await self.collect()
        chunks = []
        for chunk in exposition.chunks():
            chunks.append(chunk)
            await self._runtime.slices.turn()
        return HttpAnswer(HTTPStatus.OK, chunks, CONTENT_TYPE)

    async def _alive(self, _: HttpRequest) -> HttpAnswer:
        """Answer that the event loop turns: else there would be no answer."""
        return HttpAnswer(HTTPStatus.OK, (b"ok\n",))

    async def _whether_ready(self, _: HttpRequest) -> HttpAnswer:
        status = HTTPStatus.SERVICE_UNAVAILABLE if self.health.problems() else HTTPStatus.OK
        return HttpAnswer(status, (f"{status.phrase}\n".encode(),))

    async def _ready(self, _: HttpRequest) -> HttpAnswer:
        problems = self.health.problems()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
        told_ = {"ready": not problems, "reasons": problems}
        return HttpAnswer(status, (json.dumps(told_).encode() + b"\n",), _JSON)
