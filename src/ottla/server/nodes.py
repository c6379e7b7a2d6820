"""The brokers as a client may know them: id and the address that works for this client."""

from __future__ import annotations

from ottla.cluster.entities import Broker
from ottla.server.context import Context


def listed_brokers(context: Context, *, fenced: bool = False) -> list[tuple[Broker, str, int]]:
    """(broker, host, port) of every broker a client of this connection's listener can reach."""
    listener = context.connection.listener
    found = []
    for broker in context.metadata.state.brokers.values():
        if broker.fenced and not fenced:
            continue
        if broker.id == context.node_id:
            found.append((broker, *context.advertised(listener)))
        else:
            found.extend((broker, end.host, end.port) for end in broker.endpoints if end.name == listener)
    return found
