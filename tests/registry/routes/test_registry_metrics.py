"""What a registry tells of itself: requests by route, errors, and what it holds."""

from __future__ import annotations

from tests.registry.memory import Registry
from tests.registry.schemas import ONE, TWO
from tests.server.metrics.scraping import Scrape

from ottla.observe.metrics.exposition import CONTENT_TYPE

REQUESTS = "ottla_registry_requests_total"
VERSIONS = "/subjects/{subject}/versions"


def scraped(registry: Registry) -> Scrape:
    answer = registry.ask("GET", "/metrics", Accept="application/openmetrics-text;version=1.0.0,*/*;q=0.1")
    assert (answer.status, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    return Scrape(answer.body.decode())


def test_requests_errors_and_sizes() -> None:
    registry = Registry()
    for subject in ("a", "b"):
        for schema in (ONE, TWO):
            registry.ask("POST", f"/subjects/{subject}/versions", {"schema": schema})
    registered = sum(len(versions) for versions in registry.store.machine.state.subjects.values())
    assert registry.ask("GET", "/subjects/missing/versions").status == 404
    for path in ("/nothing", "/nothing-else"):
        assert registry.ask("BREW", path).status == 404
    scrape = scraped(registry)
    assert scrape(REQUESTS, method="POST", route=VERSIONS) == 4
    assert scrape(REQUESTS, method="GET", route=VERSIONS) == 1
    assert scrape("ottla_registry_errors_total", method="GET", route=VERSIONS, status="404") == 1
    assert scrape(REQUESTS, method="(other)", route="(other)") == 2
    assert scrape("ottla_registry_request_seconds_count", method="POST", route=VERSIONS) == 4
    assert scrape("ottla_registry_subjects") == 2
    assert scrape("ottla_registry_schemas") == registered >= 2
    assert registry.ask("POST", "/metrics").status == 404, "only reading"
