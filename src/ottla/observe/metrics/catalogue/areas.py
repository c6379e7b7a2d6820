"""All areas of the catalogue, in the order in which docs/metrics.md has them."""

from collections.abc import Iterator

from ottla.observe.metrics.catalogue.clients import clients
from ottla.observe.metrics.catalogue.connections import connections
from ottla.observe.metrics.catalogue.coordinators import coordinators
from ottla.observe.metrics.catalogue.lag import lag
from ottla.observe.metrics.catalogue.loop import loop
from ottla.observe.metrics.catalogue.otel import otel
from ottla.observe.metrics.catalogue.partitions import replica_manager
from ottla.observe.metrics.catalogue.process import process
from ottla.observe.metrics.catalogue.quorum import quorum
from ottla.observe.metrics.catalogue.requests import requests
from ottla.observe.metrics.catalogue.storage import storage
from ottla.observe.metrics.catalogue.topics import topics
from ottla.observe.metrics.declaration import Metric

AREAS = (
    replica_manager,
    quorum,
    requests,
    topics,
    storage,
    loop,
    connections,
    coordinators,
    lag,
    clients,
    otel,
    process,
)


def metrics() -> Iterator[Metric]:
    for area in AREAS:
        yield from area.metrics
