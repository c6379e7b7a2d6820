"""What a node pushes to an OpenTelemetry collector, encoded as OTLP: data points and spans."""
