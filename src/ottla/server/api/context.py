"""The context of a request: the façades of the node's rooms, and facts of the connection it came by.

`Facades` exists once per node; a `Context` once per connection. `request_version` and `client_id` belong to the request
being handled and are overwritten by the next one: a handler whose answer waits reads them before it returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ottla.log.config import ContractTerms
from ottla.log.inspection import Inspector
from ottla.model.config import Config
from ottla.replica.partition import Partition
from ottla.security.authorizer import Authorizer
from ottla.security.decisions import Decisions
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.protocol import SecurityProtocol
from ottla.server.api.watching.seen_requests import RequestLog
from ottla.server.fetch.fetches import Fetches
from ottla.server.loop.current_span import OpenSpan
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.quotas.client_quotas import ClientQuotas
from ottla.server.replication.replication import Replication
from ottla.server.schemas.contracts import Contracts
from ottla.server.security.authentication import Authentication
from ottla.server.security.node_security import NodeSecurity
from ottla.server.settings.configs import Configs
from ottla.server.storage.storage import Storage
from ottla.server.tenants.tenants import Tenants

if TYPE_CHECKING:  # these modules are imported when they are first needed
    from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
    from ottla.server.groups.groups import Groups
    from ottla.server.shares.shares import Shares
    from ottla.server.telemetry.client_telemetry import ClientTelemetry
    from ottla.server.txns.transactions import Transactions

T = TypeVar("T")

# What Kafka calls a client that has not told its name and version.
UNKNOWN_SOFTWARE = "unknown", "unknown"


class ClientViews(NamedTuple):
    """What the node knows of its clients beyond their requests' own handling."""

    telemetry: ClientTelemetry | None  # None if this node does not tell metrics
    request_log: Callable[[], RequestLog]  # made when it is first needed


@dataclass(slots=True, frozen=True)
class Facades:
    """The façades of a node's rooms that handlers use, built by `server/rooms.py`."""

    runtime: Runtime
    configs: Configs
    storage: Storage
    member: QuorumMember
    coordinators: CoordinatorsOnDemand
    contracts: Contracts
    quotas: ClientQuotas
    tenants: Tenants
    security: NodeSecurity
    advertised: Callable[[str], tuple[str, int] | None]  # listener name → its advertised address, if one is configured
    replication: Replication | None  # None if this node is no broker
    fetches: Fetches | None  # None if this node is no broker
    clients: ClientViews


class Peer(NamedTuple):
    """The client at the other end of a connection, and the listener that accepted it."""

    listener: str
    local_address: tuple[str, int]
    remote_address: tuple[str, int]
    controller: bool = False  # whether it is a listener of controllers, not of brokers
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    principal: Principal = ANONYMOUS  # whom the client is when its first request comes, as by a certificate
    # Whether a broker sent the request of a client in an Envelope: the principal is the client's, not the broker's.
    forwarded: bool = False

    @property
    def is_broker(self) -> bool:
        """Whether a broker speaks for itself to a controller."""
        return self.controller and not self.forwarded


class ClientConnection(Protocol):
    """The connection of a client, as far as its requests use it."""

    def go_on(self) -> None:
        """Handle the next request, because the one that kept its turn is done."""

    def has_left(self) -> bool:
        """Return whether the client has disconnected."""

    @property
    def sasl(self) -> SaslClient | None:
        """The client as its SASL conversation sees it; None without SASL."""


class SaslClient(Protocol):
    """What the handlers of SASL use of a connection."""

    @property
    def authentication(self) -> Authentication:
        """The SASL conversation of the connection."""

    def authenticated(self, lifetime_ms: int) -> None:
        """Serve all requests from now on, for `lifetime_ms` (0: without end)."""

    def close_after_answer(self) -> None:
        """Close the connection when the answer to the present request was sent."""


class Context:
    __slots__ = (
        "_client",
        "_facades",
        "_is_over",
        "_principal",
        "client_id",
        "client_software",
        "cluster_id",
        "configs",
        "connection",
        "holds",
        "is_follower",
        "known_decisions",
        "member",
        "next_fetch_ends_wait",
        "node_id",
        "quotas",
        "replication",
        "request_version",
        "runtime",
        "span",
        "storage",
        "tenants",
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
        self.quotas = facades.quotas
        self.tenants = facades.tenants
        self.replication = facades.replication
        self.node_id = facades.member.metadata.node_id
        self.cluster_id = facades.member.metadata.cluster_id
        self.connection = connection
        self._client = client
        self._is_over = False  # whether the client's connection is closed
        self._principal: Principal = connection.principal
        self.known_decisions: Decisions | None = None  # about this principal; may be of an earlier authorizer
        self.holds = 0  # the number of reasons to delay the next request; almost always 0
        self.turns_kept = 0  # how many of the holds are requests, or parts of one, that are not carried out yet
        self.next_fetch_ends_wait = False  # whether the next fetch ends a waiting one, as in a follower's session
        self.is_follower = False  # whether the client's last fetch was one of a follower
        self.request_version = 0
        self.span: OpenSpan | None = None  # of the request, on a node that traces it
        self.client_id = ""
        self.client_software = UNKNOWN_SOFTWARE  # the client's name and version, as its ApiVersions tells them
        self.when_closed: dict[Hashable, Callable[[], None]] = {}  # callbacks for when the connection is closed

    def hold(self) -> None:
        """Keep the request in the receive buffer, and delay the requests behind it, until `let_go`.

        A request that cannot be carried out at once keeps its turn in this way (`turns.keep_turn`), and one whose
        records wait for a slow disk is counted as memory until they are written (`unwritten_records.py`).
        """
        self.holds += 1

    def hold_until(self, task: asyncio.Future[T]) -> None:
        """Hold the connection until `task`, which handles a request of it, is done."""
        self.hold()
        task.add_done_callback(lambda _: self.let_go())

    def let_go(self) -> None:
        self.holds -= 1
        if not self.holds and self._client is not None:
            self._client.go_on()

    def has_left(self) -> bool:
        """Return whether the client has disconnected, for long work that only this client needs."""
        return self._is_over or (self._client is not None and self._client.has_left())

    def end(self) -> None:
        """Let go of the connection, which is closed: requests that are still being carried out keep this context."""
        self._client = None
        self._is_over = True

    @property
    def sasl(self) -> SaslClient | None:
        """The client as its SASL conversation sees it; None without SASL, and once the connection is closed."""
        return None if self._client is None else self._client.sasl

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
    def telemetry(self) -> ClientTelemetry | None:
        return self._facades.clients.telemetry

    @property
    def request_log(self) -> RequestLog:
        """The latest requests of clients that somebody watches."""
        return self._facades.clients.request_log()

    @property
    def security(self) -> NodeSecurity:
        return self._facades.security

    @property
    def authorizer(self) -> Authorizer | None:
        """The rules that requests are checked with; None if everything is allowed. Another request may have others."""
        return self._facades.security.authorization.authorizer

    @property
    def is_audited(self) -> bool:
        """Whether the node has an audit log."""
        return self._facades.security.authorization.audit is not None

    def note_change(self, api: str, named: str, *, is_allowed: bool = True) -> None:
        """Note in the audit log, if there is one, that the request changes what it names, or that it was refused."""
        audit = self._facades.security.authorization.audit
        if audit is not None:
            audit.note_change(self.principal, self.connection.remote_address[0], api, named, is_allowed)

    @property
    def principal(self) -> Principal:
        """Who the client is. It changes when the connection authenticates by SASL, and what was decided about the
        earlier one is forgotten.
        """
        return self._principal

    @principal.setter
    def principal(self, principal: Principal) -> None:
        self._principal = principal
        self.known_decisions = None

    @property
    def decisions(self) -> Decisions | None:
        """What the client of this connection may do; None if everything is allowed."""
        authorizer = self._facades.security.authorization.authorizer
        if authorizer is None:
            return None
        known = self.known_decisions
        if known is None or known.principal is not self.principal or known.authorizer is not authorizer:
            host = self.connection.remote_address[0]
            silent = self._facades.security.authorization.silent
            known = self.known_decisions = Decisions(authorizer, self.principal, host, silent)
        return known

    @property
    def settings(self) -> Config:
        """The broker's current settings, dynamic changes included."""
        return self.configs.broker

    def inspector(self, partition: Partition, terms: ContractTerms) -> Later[Inspector]:
        """Return the inspector for one batch of a partition whose topic has this contract."""
        return self._facades.contracts.inspector(partition, terms)

    def beside(self, connection: Peer) -> Context:
        """Return a context of the same node for a request that does not keep a turn on this connection, as the
        principal of `connection`.
        """
        return Context(self._facades, connection)

    def advertised(self, listener: str) -> tuple[str, int]:
        """Return the address of this node for a client of `listener`: as configured, else the address that the client
        connected to.
        """
        return self._facades.advertised(listener) or self.connection.local_address
