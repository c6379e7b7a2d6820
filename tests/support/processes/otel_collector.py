"""OpenTelemetry's collector with its OTLP receiver: what nodes push to it, as it understands it, in a file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.ports import free_ports
from tests.support.tools import COLLECTOR

_CONFIG = """
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
        {tls}
exporters:
  file/metrics:
    path: {directory}/metrics.json
  file/traces:
    path: {directory}/traces.json
    flush_interval: 100ms
service:
  telemetry:
    metrics:
      level: none  # it would listen
  pipelines:
    metrics:
      receivers: [otlp]
      exporters: [file/metrics]
    traces:
      receivers: [otlp]
      exporters: [file/traces]
"""


@dataclass(frozen=True)
class CollectedPoint:
    """A data point of a metric, and the resource that it came from."""

    kind: str  # sum, gauge, summary
    metric: dict[str, Any]
    point: dict[str, Any]
    labels: dict[str, str]
    resource: dict[str, str]

    @property
    def value(self) -> float:
        return float(self.point["asInt"] if "asInt" in self.point else self.point["asDouble"])


@dataclass(frozen=True)
class CollectedSpan:
    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, str]
    status: int  # 2: an error
    begun_ns: int
    ended_ns: int
    node_id: int


class OtelCollector:
    """`endpoint` is for `ottla.otel.endpoint`."""

    def __init__(self, directory: Path, port: int, scheme: str = "http") -> None:
        self.endpoint = f"{scheme}://127.0.0.1:{port}"
        self.directory = directory

    def points(self, name: str) -> list[CollectedPoint]:
        """The points of a metric, the newest last."""
        found = []
        for line in self._lines("metrics.json"):
            for resource in line["resourceMetrics"]:
                who = attributes_of(resource["resource"])
                for metric in (each for scope in resource["scopeMetrics"] for each in scope["metrics"]):
                    if metric["name"] == name:
                        kind = next(each for each in ("sum", "gauge", "summary") if each in metric)
                        found += [
                            CollectedPoint(kind, metric, point, attributes_of(point), who)
                            for point in metric[kind]["dataPoints"]
                        ]
        return found

    def names(self) -> set[str]:
        """The names of all metrics that came."""
        return {
            metric["name"]
            for line in self._lines("metrics.json")
            for resource in line["resourceMetrics"]
            for scope in resource["scopeMetrics"]
            for metric in scope["metrics"]
        }

    def spans(self) -> list[CollectedSpan]:
        return [
            CollectedSpan(
                span["name"],
                span["kind"],
                span["traceId"],
                span["spanId"],
                span.get("parentSpanId", ""),
                attributes_of(span),
                span.get("status", {}).get("code", 0),
                int(span["startTimeUnixNano"]),
                int(span["endTimeUnixNano"]),
                int(attributes_of(resource["resource"])["ottla.node.id"]),
            )
            for line in self._lines("traces.json")
            for resource in line["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        path = self.directory / name
        for line in path.read_text().splitlines(keepends=True) if path.exists() else ():
            if line.endswith("\n"):  # else it is being written
                yield json.loads(line)


def attributes_of(told: dict[str, Any]) -> dict[str, str]:
    return {each["key"]: str(next(iter(each["value"].values()))) for each in told.get("attributes", ())}


@contextmanager
def otel_collector(
    directory: Path, *, port: int | None = None, certificate: tuple[Path, Path] | None = None
) -> Iterator[OtelCollector]:
    """Run one; `certificate` and its key are files."""
    directory.mkdir(exist_ok=True)
    port = free_ports(1)[0] if port is None else port
    tls = "" if certificate is None else "tls: {{cert_file: {}, key_file: {}}}".format(*certificate)
    config = directory / "collector.yaml"
    config.write_text(_CONFIG.format(directory=directory, port=port, tls=tls))
    with (
        (directory / "log").open("ab") as log,
        subprocess.Popen(
            [str(COLLECTOR), "--config", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory
        ) as process,
    ):
        try:
            yield OtelCollector(directory, port, "http" if certificate is None else "https")
        finally:
            process.terminate()
