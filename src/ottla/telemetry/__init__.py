"""Client telemetry (KIP-714) without I/O: which clients push which metrics, how often, and what a push says.

A subscription is a resource of type client-metrics, which admins configure: names of metrics, an interval, and patterns
of clients. A client instance asks what it is subscribed to, pushes accordingly, and asks again when it is told that its
subscription is out of date. What it pushes is OTLP: Protobuf, perhaps compressed.
"""
