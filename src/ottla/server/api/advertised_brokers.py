"""The brokers as a client sees them: which are available, and their addresses on the client's listener."""

from __future__ import annotations

from typing import NamedTuple

from ottla.cluster.entities import Broker, PartitionState
from ottla.server.api.context import Context

_NONE = -1


def listed_brokers(context: Context, *, fenced: bool = False) -> list[tuple[Broker, str, int]]:
    """Return (broker, host, port) of every broker that a client of this connection's listener can reach."""
    listener = context.connection.listener
    brokers = context.member.state.brokers
    found = []
    for broker in brokers.values():
        if broker.fenced and not fenced:
            continue
        if broker.id == context.node_id and len(brokers) == 1:
            found.append((broker, *context.advertised(listener)))
        else:
            found.extend((broker, end.host, end.port) for end in broker.endpoints if end.name == listener)
    return found


def some_broker(context: Context) -> int:
    """Return any unfenced broker: each of them forwards requests to the controller. -1 if there is none."""
    alive = [broker.id for broker in context.member.state.brokers.values() if not broker.fenced]
    return context.runtime.rng.choice(alive) if alive else _NONE


class ListenerView(NamedTuple):
    """The brokers as clients of one listener see them."""

    alive: frozenset[int]
    reachable: frozenset[int]  # alive, and with an endpoint on that listener
    brokers: dict[int, Broker]

    @classmethod
    def of(cls, context: Context) -> ListenerView:
        brokers = context.member.state.brokers
        alive = frozenset(id for id, broker in brokers.items() if not broker.fenced)
        listener = context.connection.listener
        reachable = frozenset(
            id for id in alive if len(brokers) == 1 or any(end.name == listener for end in brokers[id].endpoints)
        )
        return cls(alive, reachable, brokers)

    def offline(self, state: PartitionState) -> list[int]:
        """Return the replicas that cannot be read now: their broker or their directory is offline."""
        if not state.directories:
            return [id for id in state.replicas if id not in self.reachable]
        return [
            id
            for id, directory in zip(state.replicas, state.directories, strict=True)
            if id not in self.reachable or not self.brokers[id].has_online(directory)
        ]
