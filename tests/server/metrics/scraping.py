"""A scrape over HTTP, and its samples."""

from __future__ import annotations

import http.client
from typing import NamedTuple

from ottla.operations.metrics.samples import lines_of, sample_in
from ottla.testing.broker import EmbeddedBroker

ON = {"ottla.metrics.listener": "127.0.0.1:0"}

Labels = tuple[tuple[str, str], ...]


class Got(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str


class Scrape:
    """The samples of one scrape: `scrape("name", topic="t")` is a value."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples: dict[tuple[str, Labels], float] = {}
        for line in lines_of(text):
            found = sample_in(line)
            assert found is not None, line
            name, labels, value = found
            key = name, tuple(sorted(labels.items()))
            assert key not in self.samples, f"{line} comes twice"
            self.samples[key] = value

    def __call__(self, name: str, **labels: str) -> float:
        return self.samples[name, tuple(sorted(labels.items()))]

    def labels(self, name: str, label: str) -> set[str]:
        """The values that a label of a metric has."""
        return {dict(labels)[label] for found, labels in self.samples if found == name and label in dict(labels)}


def get(address: tuple[str, int] | None, path: str, method: str = "GET") -> Got:
    assert address is not None, "metrics are off"
    connection = http.client.HTTPConnection(*address, timeout=60)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return Got(response.status, dict(response.getheaders()), response.read().decode())
    finally:
        connection.close()


def scraped(broker: EmbeddedBroker) -> Scrape:
    assert broker.node is not None, "it runs"
    got = get(broker.node.metrics_address, "/metrics")
    assert got.status == 200, got
    return Scrape(got.body)
