"""The asyncio client: producers, consumers, share consumers, range reads and administration over one `Cluster`.

The client works against Ottla and against any Kafka broker. The public names are in `ottla` (`from ottla import
Producer`); `client/blocking` is the same client for code without an event loop.
"""
