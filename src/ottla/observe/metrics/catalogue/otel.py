"""What a node pushes to an OpenTelemetry collector."""

from ottla.observe.metrics.declaration import Area

otel = Area("OpenTelemetry", "What this node pushes, if `ottla.otel.endpoint` is set.")

PUSHES = otel.counter(
    "ottla_otel_pushes_total",
    "Pushes by signal (metrics, traces) and outcome: accepted, rejected in part, failed.",
    "signal",
    "outcome",
)
PUSHED_BYTES = otel.counter("ottla_otel_pushed_bytes_total", "Their bytes, compressed.", "signal", unit="bytes")
SPANS = otel.counter(
    "ottla_otel_spans_total",
    "Spans by what became of them: pushed; refused by the collector; or dropped because too many waited.",
    "outcome",
)
