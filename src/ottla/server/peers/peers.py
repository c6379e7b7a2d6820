"""Peers: the connections of this node to other nodes.

There is one connection per (purpose, address), opened by the first request and again after it broke, with a growing
pause between failed attempts. Purposes have their own connections because a node answers one connection in order: a
fetch that waits must not delay a vote.

If a connection breaks and this node did not close it, the callbacks registered with `on_lost` are called at once. So
the end of a process is noticed within milliseconds; `probe` then distinguishes a stopped process from a failed network.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from ottla.client.address import Address
from ottla.client.errors import NotConnected, RequestTimedOut
from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.server.loop.current_span import OpenSpan, current_span
from ottla.wire.message import Request, Response

if TYPE_CHECKING:
    from ottla.client.connection import Connection
    from ottla.client.security.security import Security

R = TypeVar("R", bound=Response)
OnLost = Callable[[], None]


class Reach(enum.Enum):
    """The outcome of an attempt to connect."""

    LISTENS = "listens"
    REFUSES = "refuses"  # the machine is up, the process is not
    SILENT = "silent"


class Peers:
    """`client_id` is the client id that other nodes see, followed by the purpose. `security` returns how connections
    are secured now; None: they are plain.
    """

    def __init__(
        self,
        client_id: str,
        *,
        security: Callable[[], Security | None] = lambda: None,
        connect_timeout_ms: int = limits.PEER_CONNECT_MS,
    ) -> None:
        self._client_id = client_id
        self._security = security
        self._connect_timeout_ms = connect_timeout_ms
        self._links: dict[tuple[str, Address], _Link] = {}
        self._listeners: dict[Address, dict[object, OnLost]] = {}
        self._names = _Names()
        self._closed = False

    async def ask(
        self, address: Address, request: Request[R], *, timeout_ms: int, purpose: str = "peer", patient: bool = True
    ) -> R:
        """Return the answer, in the highest version that both sides support.

        Raise `ClientError` if there is none within `timeout_ms`, connecting included. If not `patient`, raise at once
        instead of waiting for the next attempt to connect, so that the caller can ask another node.
        """
        link = self._link(purpose, address)
        if not patient and link.pauses:
            raise NotConnected(f"no connection to {address} for the moment")
        connection = await link.connected(timeout_ms)
        span = current_span()
        if span is not None:
            return await _traced(span, connection, request, timeout_ms)
        return await connection.request(request, timeout_ms=timeout_ms)

    async def connect(self, address: Address, *, timeout_ms: int, purpose: str = "peer") -> Connection:
        """Return the open connection itself, for callers that pipeline requests or need a certain version."""
        return await self._link(purpose, address).connected(timeout_ms)

    def on_lost(self, address: Address, callback: OnLost) -> Callable[[], None]:
        """Call `callback` whenever a connection to `address` breaks; return a callable that ends this."""
        key = object()
        self._listeners.setdefault(address, {})[key] = callback

        def forget() -> None:
            callbacks = self._listeners.get(address, {})
            callbacks.pop(key, None)
            if not callbacks:
                self._listeners.pop(address, None)

        return forget

    async def close(self) -> None:
        self._closed = True
        links = list(self._links.values())
        self._links.clear()
        self._listeners.clear()
        for link in links:
            link.close()
        for link in links:
            await link.closed()
        self._names.close()

    def _link(self, purpose: str, address: Address) -> _Link:
        if self._closed:
            raise NotConnected("this node is stopping")
        link = self._links.get((purpose, address))
        if link is None:
            if len(self._links) >= limits.PEER_LINKS_MAX:
                self._drop_one()
            client_id = f"{self._client_id}-{purpose}"
            link = _Link(address, client_id, self._security, self._connect_timeout_ms, self._lost, self._names)
            self._links[purpose, address] = link
        return link

    def _drop_one(self) -> None:
        """Close one link if there are too many: an unconnected one, else the oldest. Addresses come from other nodes
        and may change without end.
        """
        idle = (key for key, link in self._links.items() if link.is_idle)
        self._links.pop(next(idle, next(iter(self._links)))).close()

    def _lost(self, address: Address) -> None:
        for callback in list(self._listeners.get(address, {}).values()):
            callback()


class _Names:
    """Lookups of host names, one at a time per name. The loop has few threads for lookups, and one that hangs keeps its
    thread even if the caller gives up.
    """

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Task[object]] = {}

    async def look_up(self, host: str, timeout_ms: int) -> None:
        """Wait until the name was looked up; raise NotConnected if that takes too long."""
        if _is_number(host):
            return
        asked = self._asked.get(host)
        if asked is None:
            loop = asyncio.get_running_loop()
            asked = self._asked[host] = loop.create_task(loop.getaddrinfo(host, None))
            asked.add_done_callback(lambda done: self._answered(host, done))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await asyncio.shield(asked)
        except TimeoutError:
            raise NotConnected(f"the name {host} was not found within {timeout_ms} ms") from None
        except (OSError, ValueError):
            return  # connecting fails with the same error and a better message

    def _answered(self, host: str, asked: asyncio.Task[object]) -> None:
        self._asked.pop(host, None)
        if not asked.cancelled():
            asked.exception()  # retrieved here because asyncio warns otherwise; the callers handle it

    def close(self) -> None:
        for asked in tuple(self._asked.values()):
            asked.cancel()


async def _traced(span: OpenSpan, connection: Connection, request: Request[R], timeout_ms: int) -> R:
    """Send a request for another one, as a part of its trace if the other node traces, too."""
    child = span.child(type(request).name, asks=True)
    child.note("server.address", connection.address.host)
    child.note("server.port", connection.address.port)
    error = ""
    try:
        version = connection.version_of(type(request))
        await connection.wait_for_room()
        told = connection.api_versions
        parent = child.trace_parent if told is not None and told.traces else None
        return await connection.submit_now(request, version=version, timeout_ms=timeout_ms, trace_parent=parent)
    except BaseException as failure:
        error = type(failure).__name__
        raise
    finally:
        child.end(error)


def _is_number(host: str) -> bool:
    """Return whether the host is an IP address, which needs no lookup."""
    return ":" in host or host.replace(".", "").isdigit()


class _Link:
    """One connection, opened again when it is needed after it broke."""

    def __init__(
        self,
        address: Address,
        client_id: str,
        security: Callable[[], Security | None],
        connect_timeout_ms: int,
        on_lost: Callable[[Address], None],
        names: _Names,
    ) -> None:
        self._address = address
        self._client_id = client_id
        self._security = security
        self._connect_timeout_ms = connect_timeout_ms
        self._on_lost = on_lost
        self._names = names
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[Connection] | None = None
        self._failures = 0
        self._not_before_s = 0.0

    @property
    def pauses(self) -> bool:
        """Whether the last attempt failed so recently that the next one has to wait."""
        is_open = self._connection is not None and self._connection.is_open
        return not is_open and self._not_before_s > asyncio.get_running_loop().time()

    @property
    def is_idle(self) -> bool:
        return self._connecting is None and (self._connection is None or not self._connection.is_open)

    async def connected(self, timeout_ms: int) -> Connection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        connecting = self._connecting
        if connecting is None:
            connecting = self._connecting = asyncio.get_running_loop().create_task(self._connect())
            connecting.add_done_callback(self._connected)
        cancelled = _cancellations()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                # Several callers may wait for the connection, and one that gives up must not cancel it for the others.
                return await asyncio.shield(connecting)
        except TimeoutError:
            raise RequestTimedOut(f"no connection to {self._address} within {timeout_ms} ms") from None
        except asyncio.CancelledError:
            if not connecting.cancelled() or _cancellations() > cancelled:
                raise  # the caller itself was cancelled, perhaps along with the connection
            raise NotConnected(f"the connection to {self._address} was closed") from None

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        pause_s = self._not_before_s - loop.time()
        if pause_s > 0:
            await asyncio.sleep(pause_s)
        await self._names.look_up(self._address.host, self._connect_timeout_ms)
        from ottla.client.connection import Connection  # not needed by a single node

        return await Connection.open(
            self._address,
            client_id=self._client_id,
            connect_timeout_ms=self._connect_timeout_ms,
            on_lost=lambda: self._on_lost(self._address),
            security=self._security(),
        )

    def _connected(self, task: asyncio.Task[Connection]) -> None:
        if task.cancelled():
            return
        self._connecting = None
        if task.exception() is not None:
            pause_ms = min(limits.PEER_RECONNECT_MS_MAX, limits.PEER_RECONNECT_MS << min(self._failures, 10))
            self._failures += 1
            self._not_before_s = asyncio.get_running_loop().time() + pause_ms / 1000
            return
        self._failures = 0
        self._connection = task.result()

    def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.close()

    async def closed(self) -> None:
        if self._connecting is not None:
            await asyncio.gather(self._connecting, return_exceptions=True)


def _cancellations() -> int:
    """Return how often the current task was cancelled."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


async def probe(address: Address, timeout_ms: int) -> Reach:
    """Return whether a process listens at the address now, without sending a request."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            transport, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, address.host, address.port
            )
    except ConnectionRefusedError:
        return Reach.REFUSES
    except (OSError, TimeoutError, OverflowError, ValueError):  # the last two: the address is invalid
        return Reach.SILENT
    transport.abort()
    return Reach.LISTENS


def broker_address(state: ClusterState, broker_id: int, listener: str) -> Address | None:
    """Return the address of a broker's listener of this name, or None."""
    broker = state.brokers.get(broker_id)
    if broker is None:
        return None
    return next((Address(each.host, each.port) for each in broker.endpoints if each.name == listener), None)


def bootstrap_addresses(state: ClusterState, listener: str, own_id: int) -> list[Address]:
    """Return where a client of this node enters the cluster: this node's own listener of this name if it is a broker,
    else those of some registered brokers, unfenced ones first.
    """
    own = broker_address(state, own_id, listener)
    if own is not None:
        return [own]
    brokers = sorted(state.brokers.values(), key=lambda broker: (broker.fenced, broker.id))
    found = (broker_address(state, broker.id, listener) for broker in brokers)
    return list(islice(filter(None, found), limits.BOOTSTRAP_BROKERS_MAX))
