"""The asyncio client: producers, consumers, share consumers, range reads and administration over one `Cluster`.

It works against Ottla and against any Kafka broker. The public names are in `ottla` (`from ottla import Producer`);
`client/blocking` is the same for code without an event loop.
"""
