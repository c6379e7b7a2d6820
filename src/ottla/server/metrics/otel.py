"""What the node pushed to its OpenTelemetry collector."""

from __future__ import annotations

from ottla.observe.metrics.catalogue import otel as told
from ottla.observe.metrics.exposition import Exposition
from ottla.server.loop.slices import Steps
from ottla.server.otel.otel_export import OtelExport


class OtelCollector:
    def __init__(self, export: OtelExport | None) -> None:
        self._export = export

    def collect(self, exposition: Exposition) -> Steps:
        export = self._export
        if export is None:
            return
        for pushes in (export.metrics, export.traces):
            for outcome, count in sorted(pushes.outcomes.items()):
                exposition.add(told.PUSHES, count, pushes.signal, outcome)
            exposition.add(told.PUSHED_BYTES, pushes.sent_bytes, pushes.signal)
        if export.tracer is not None:
            for outcome, count in sorted(export.tracer.outcomes.items()):
                exposition.add(told.SPANS, count, outcome)
        yield
