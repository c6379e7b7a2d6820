"""The context of a request: the façades of the node's rooms, and facts of the connection it came by.

`Facades` exists once per node; a `Context` once per connection. `request_version` and `client_id` belong to the request
being handled and are overwritten by the next one: a handler whose answer waits reads them before it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.log.config import ContractTerms
from ottla.log.inspection import Inspector
from ottla.model.config import Config
from ottla.replica.partition import Partition
from ottla.server.fetch.fetches import Fetches
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.replication.replication import Replication
from ottla.server.schemas.contracts import Contracts
from ottla.server.settings.configs import Configs
from ottla.server.storage.storage import Storage

if TYPE_CHECKING:  # these modules are imported when they are first needed
    from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
    from ottla.server.groups.groups import Groups
    from ottla.server.shares.shares import Shares
    from ottla.server.txns.transactions import Transactions


@dataclass(slots=True, frozen=True)
class Facades:
    """The façades of a node's rooms that handlers use, built by `server/rooms.py`."""

    runtime: Runtime
    configs: Configs
    storage: Storage
    member: QuorumMember
    coordinators: CoordinatorsOnDemand
    contracts: Contracts
    advertised: Callable[[str], tuple[str, int] | None]  # listener name → its advertised address, if one is configured
    replication: Replication | None  # None if this node is no broker
    fetches: Fetches | None  # None if this node is no broker


class Peer(NamedTuple):
    """The client at the other end of a connection, and the listener that accepted it."""

    listener: str
    local_address: tuple[str, int]
    remote_address: tuple[str, int]
    controller: bool = False  # whether it is a listener of controllers, not of brokers


class ClientConnection(Protocol):
    """The connection of a client, as far as its requests use it."""

    def go_on(self) -> None:
        """Handle the next request, because the one that kept its turn is done."""

    def has_left(self) -> bool:
        """Return whether the client has disconnected."""


class Context:
    __slots__ = (
        "_facades",
        "client",
        "client_id",
        "cluster_id",
        "configs",
        "connection",
        "holds",
        "member",
        "next_fetch_ends_wait",
        "node_id",
        "replication",
        "request_version",
        "runtime",
        "storage",
        "turns_kept",
        "when_closed",
    )

    def __init__(self, facades: Facades, connection: Peer, client: ClientConnection | None = None) -> None:
        """`client` is None for a request without a client connection."""
        self._facades = facades
        self.runtime = facades.runtime
        self.configs = facades.configs
        self.storage = facades.storage
        self.member = facades.member
        self.replication = facades.replication
        self.node_id = facades.member.metadata.node_id
        self.cluster_id = facades.member.metadata.cluster_id
        self.connection = connection
        self.client = client
        self.holds = 0  # the number of reasons to delay the next request; almost always 0
        self.turns_kept = 0  # how many of the holds are requests, or parts of one, that are not carried out yet
        self.next_fetch_ends_wait = False  # whether the next fetch ends a waiting one, as in a follower's session
        self.request_version = 0
        self.client_id = ""
        self.when_closed: dict[Hashable, Callable[[], None]] = {}  # callbacks for when the connection is closed

    def hold(self) -> None:
        """Keep the request in the receive buffer, and delay the requests behind it, until `let_go`.

        A request that cannot be carried out at once keeps its turn in this way (`turns.keep_turn`), and one whose
        records wait for a slow disk is counted as memory until they are written (`unwritten_records.py`).
        """
        self.holds += 1

    def let_go(self) -> None:
        self.holds -= 1
        if not self.holds and self.client is not None:
            self.client.go_on()

    def has_left(self) -> bool:
        """Return whether the client has disconnected, for long work that only this client needs."""
        return self.client is not None and self.client.has_left()

    @property
    def groups(self) -> Groups:
        return self._facades.coordinators.all.groups

    @property
    def transactions(self) -> Transactions:
        return self._facades.coordinators.all.transactions

    @property
    def shares(self) -> Shares:
        return self._facades.coordinators.all.shares

    @property
    def fetches(self) -> Fetches:
        fetches = self._facades.fetches
        assert fetches is not None, "only brokers are asked for it"
        return fetches

    @property
    def settings(self) -> Config:
        """The broker's current settings, dynamic changes included."""
        return self.configs.broker

    def inspector(self, partition: Partition, terms: ContractTerms) -> Later[Inspector]:
        """Return the inspector for one batch of a partition whose topic has this contract."""
        return self._facades.contracts.inspector(partition, terms)

    def beside(self, connection: Peer) -> Context:
        """Return a context of the same node for a request that does not keep a turn on this connection."""
        return Context(self._facades, connection)

    def advertised(self, listener: str) -> tuple[str, int]:
        """Return the address of this node for a client of `listener`: as configured, else the address that the client
        connected to.
        """
        return self._facades.advertised(listener) or self.connection.local_address
