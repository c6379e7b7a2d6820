"""Clients: what they pushed about themselves, told one client instance after the other."""

from __future__ import annotations

from collections.abc import Callable

from ottla.model import limits
from ottla.observe.metrics.catalogue import clients as told
from ottla.observe.metrics.exposition import Exposition
from ottla.server.loop.slices import Steps, Tally
from ottla.server.telemetry.client_telemetry import ClientTelemetry
from ottla.telemetry.pushed_clients import PushedClient
from ottla.telemetry.series import CLIENT_ID, INSTANCE_ID, is_counter, label_names

# What clients call the labels of `CLIENT` that they push themselves, in its order.
_RESOURCE = ("client_rack", "group_id", "group_member_id", "transactional_id")


class ClientsCollector:
    def __init__(self, telemetry: ClientTelemetry | None, steady_ms: Callable[[], int]) -> None:
        self._telemetry = telemetry
        self._steady_ms = steady_ms

    def collect(self, exposition: Exposition) -> Steps:
        telemetry = self._telemetry
        if telemetry is None:  # the node is no broker
            return
        exposition.add(told.SUBSCRIPTIONS, len(telemetry.subscriptions.all()))
        exposition.add(told.INSTANCES, len(telemetry.instances))
        for error, count in sorted(telemetry.pushes.items()):
            exposition.add(told.PUSHES, count, error.name)
        exposition.add(told.RECEIVED, telemetry.received_bytes)
        exposition.add(told.LEFT_OUT, telemetry.pushed.left_out)
        yield
        tally = Tally(limits.METRICS_PER_SLICE)
        now_ms = self._steady_ms()
        for pushed in telemetry.pushed:
            client, ago_s = pushed.client, max(0, now_ms - pushed.pushed_ms) / 1000
            exposition.add(told.LAST_PUSH, ago_s, client.client_id, client.client_instance_id)
            yield from _tell(pushed, tally, exposition)


def _tell(pushed: PushedClient, tally: Tally, exposition: Exposition) -> Steps:
    client = pushed.client
    exposition.add(
        told.CLIENT,
        1,
        client.client_id,
        client.client_instance_id,
        client.client_software_name,
        client.client_software_version,
        client.client_source_address,
        *(pushed.resource.get(name, "") for name in _RESOURCE),
    )
    who = (CLIENT_ID, client.client_id), (INSTANCE_ID, client.client_instance_id)
    for (name, labels), value in tuple(pushed.series.values.items()):
        names = label_names(tuple(label for label, _ in labels))
        theirs = zip(names, (text for _, text in labels), strict=True)
        exposition.add_pushed(name, value, (*who, *theirs), is_counter=is_counter(name))
        if tally.is_full():
            yield
