"""OtelExport: the way from this node to its OpenTelemetry collector, one `Pushes` per signal; and its tracer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from ottla.model.config import Config
from ottla.model.settings.own import OTTLA_OTEL_INTERVAL_MS, OTTLA_OTEL_SERVICE_NAME, OTTLA_OTEL_TRACES_RATIO
from ottla.model.version import VERSION
from ottla.server.loop.runtime import Runtime
from ottla.server.otel.pushes import Pushes
from ottla.server.otel.tracer import Tracer
from ottla.server.settings.otel_place import OtelPlace
from ottla.telemetry.export import encoding


class OtelExport:
    def __init__(
        self, runtime: Runtime, settings: Config, place: OtelPlace, node_id: int, cluster_id: Callable[[], str]
    ) -> None:
        """`cluster_id` is called when something is pushed: a fresh node learns it only after it was composed."""
        self.interval_ms = settings[OTTLA_OTEL_INTERVAL_MS]
        self.metrics = Pushes(runtime, place, "metrics")
        self.traces = Pushes(runtime, place, "traces")
        ratio = settings[OTTLA_OTEL_TRACES_RATIO]
        self.tracer = Tracer(runtime, self.traces, lambda: self.resource, ratio) if ratio else None
        self._service = settings[OTTLA_OTEL_SERVICE_NAME]
        self._node_id = node_id
        self._cluster_id = cluster_id

    @cached_property
    def resource(self) -> bytes:
        """Who pushes, encoded."""
        cluster_id = self._cluster_id()
        return encoding.resource(
            {
                "service.name": self._service,
                "service.instance.id": f"{cluster_id}/{self._node_id}",
                "service.version": VERSION,
                "ottla.cluster.id": cluster_id,
                "ottla.node.id": self._node_id,
            }
        )
