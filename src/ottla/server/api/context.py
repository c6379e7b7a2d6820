"""What a handler may touch: the node's services, and the facts of the connection it answers.

`Services` exists once per node; a `Context` once per connection. `request_version` and `client_id` belong to the
request being handled and are overwritten by the next one: a handler whose answer waits reads them before it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.model.config import Config

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from random import Random

    from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
    from ottla.server.fetch.fetches import Fetches
    from ottla.server.groups.groups import Groups
    from ottla.server.loop.clocks import Clocks
    from ottla.server.loop.runtime import Runtime
    from ottla.server.loop.slices import Slices
    from ottla.server.loop.waiters import Waiters
    from ottla.server.peers.peer_requests import PeerRequests
    from ottla.server.peers.peers import Peers
    from ottla.server.quorum.active_controller import ActiveController
    from ottla.server.quorum.broker_liveness import Liveness
    from ottla.server.quorum.metadata_host import MetadataHost
    from ottla.server.quorum.quorum import Quorum
    from ottla.server.quorum.quorum_member import QuorumMember
    from ottla.server.replication.replication import Replication
    from ottla.server.schemas.contracts import Contracts
    from ottla.server.settings.configs import Configs
    from ottla.server.shares.shares import Shares
    from ottla.server.storage.batch_looks import Looking
    from ottla.server.storage.cold_reads import ColdReads
    from ottla.server.storage.late_writes import Writer
    from ottla.server.storage.partitions import Partitions
    from ottla.server.storage.storage import Storage
    from ottla.server.storage.syncing import Syncer
    from ottla.server.txns.transactions import Transactions


@dataclass(slots=True)
class Services:
    """Node-wide; built by `server/node.py`."""

    node_id: int
    cluster_id: str
    configs: Configs
    metadata: MetadataHost
    quorum: Quorum
    controller: ActiveController
    member: QuorumMember
    liveness: Liveness
    peers: Peers
    peer_requests: PeerRequests
    inter_broker_listener: str  # the listener by which brokers talk to each other
    runtime: Runtime
    storage: Storage
    partitions: Partitions
    waiters: Waiters
    cold: ColdReads
    syncer: Syncer
    writer: Writer
    looking: Looking
    clocks: Clocks
    now_ms: Callable[[], int]  # the time of day, which may be set: for what is written down
    steady_ms: Callable[[], int]  # a clock that nobody sets: for what is measured or waited for
    clock_s: Callable[[], float]  # how long one's own turn of the event loop takes; stands still in the simulator
    rng: Random
    advertised: Callable[[str], tuple[str, int] | None]  # listener name → the configured address, if any
    coordinators: CoordinatorsOnDemand
    contracts: Contracts
    slices: Slices
    executor: Executor | None = None  # for `workers.in_worker`
    replication: Replication | None = None  # None where there are no partitions
    fetches: Fetches | None = None  # likewise

    @property
    def groups(self) -> Groups:
        return self.coordinators.all.groups

    @property
    def shares(self) -> Shares:
        return self.coordinators.all.shares

    @property
    def transactions(self) -> Transactions:
        return self.coordinators.all.transactions


class Peer(NamedTuple):
    """Who is at the other end of a connection, and which door they came through."""

    listener: str
    local_address: tuple[str, int]
    remote_address: tuple[str, int]
    controller: bool = False  # a listener of controllers, not of brokers


class ClientConnection(Protocol):
    """The connection of a client, as its requests see it."""

    def go_on(self) -> None:
        """The request that kept its turn is done with: the next one may be handled."""

    def has_left(self) -> bool:
        """Whether the client is gone."""


class Context:
    __slots__ = (
        "client",
        "client_id",
        "cluster_id",
        "configs",
        "connection",
        "controller",
        "holds",
        "is_nudged",
        "member",
        "metadata",
        "node_id",
        "now_ms",
        "partitions",
        "request_version",
        "runtime",
        "services",
        "steady_ms",
        "storage",
        "turns_kept",
        "when_closed",
    )

    def __init__(self, services: Services, connection: Peer, client: ClientConnection | None = None) -> None:
        """`client` is None for a request that came by no connection of its own."""
        self.services = services
        self.runtime = services.runtime
        self.configs = services.configs
        self.storage = services.storage
        self.node_id = services.node_id
        self.cluster_id = services.cluster_id
        self.member = services.member
        self.metadata = services.metadata
        self.controller = services.controller
        self.partitions = services.partitions
        self.now_ms = services.now_ms
        self.steady_ms = services.steady_ms
        self.connection = connection
        self.client = client
        self.holds = 0  # why the connection does not go on to the next request; almost always none
        self.turns_kept = 0  # how many of these are requests, or parts of one, that are yet to be carried out
        self.is_nudged = False  # whether a fetch that waits is ended by the next one (a follower's session)
        self.request_version = 0
        self.client_id = ""
        self.when_closed: dict[Hashable, Callable[[], None]] = {}  # what to do when the connection is gone

    def hold(self) -> None:
        """The request stays where it is, in the receive buffer, and those behind it wait until `let_go`.

        A request that cannot be carried out at once keeps its turn in this way (`turns.keep_turn`), and one whose
        records wait for a slow disk is counted as memory until they are written (`unwritten_records.py`).
        """
        self.holds += 1

    def let_go(self) -> None:
        self.holds -= 1
        if not self.holds and self.client is not None:
            self.client.go_on()

    def has_left(self) -> bool:
        """Whether nobody is there for an answer any more: asked by long work that only the client wants."""
        return self.client is not None and self.client.has_left()

    @property
    def groups(self) -> Groups:
        return self.services.coordinators.all.groups

    @property
    def transactions(self) -> Transactions:
        return self.services.coordinators.all.transactions

    @property
    def shares(self) -> Shares:
        return self.services.coordinators.all.shares

    @property
    def contracts(self) -> Contracts:
        return self.services.contracts

    @property
    def fetches(self) -> Fetches:
        fetches = self.services.fetches
        assert fetches is not None, "only brokers are asked for it"
        return fetches

    @property
    def settings(self) -> Config:
        """The broker's settings as they are now, dynamic changes included."""
        return self.configs.broker

    def advertised(self, listener: str) -> tuple[str, int]:
        """The address to tell a client of `listener`: what the operator set, else the address it dialled itself."""
        return self.services.advertised(listener) or self.connection.local_address
