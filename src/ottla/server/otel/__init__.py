"""What a node pushes to an OpenTelemetry collector, and the spans that it records; imported only where it is on."""
