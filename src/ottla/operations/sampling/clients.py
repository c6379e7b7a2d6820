"""The client instances that push telemetry (KIP-714), as the metrics of the nodes that they push to tell them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.observe.metrics.catalogue import clients as told
from ottla.operations.metrics.samples import Labels, MetricSamples


class PushingClient(NamedTuple):
    """A client instance; `node` is the broker that it pushed to last, as far as is known, `seconds` how long ago."""

    client: str
    instance: str
    software: str
    version: str
    address: str
    rack: str
    group: str
    member: str
    transactional_id: str
    node: int
    seconds: float | None


def pushing_clients(metrics: Mapping[int, MetricSamples]) -> list[PushingClient]:
    """Return the clients that the nodes tell, by id and instance. One that moved to another broker is there once."""
    found: dict[str, PushingClient] = {}
    for node_id, samples in metrics.items():
        ages = samples.by(told.LAST_PUSH.name, "client_instance_id")
        for labels, _ in samples.of(told.CLIENT.name):
            client = _client(labels, node_id, ages.get(labels.get("client_instance_id", "")))
            known = found.get(client.instance)
            if known is None or _age(client) < _age(known):
                found[client.instance] = client
    return sorted(found.values(), key=lambda each: (each.client, each.instance))


def _client(labels: Labels, node_id: int, seconds: float | None) -> PushingClient:
    def label(name: str) -> str:
        return labels.get(name, "")

    return PushingClient(
        label("client_id"),
        label("client_instance_id"),
        label("software"),
        label("software_version"),
        label("address"),
        label("rack"),
        label("group_id"),
        label("group_member_id"),
        label("transactional_id"),
        node_id,
        seconds,
    )


def _age(client: PushingClient) -> float:
    return float("inf") if client.seconds is None else client.seconds
