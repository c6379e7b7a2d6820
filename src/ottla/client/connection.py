"""One connection to one broker: frames, correlation ids, version negotiation, time-outs.

Owns a transport made by `loop.create_connection`, nothing else, so that it runs unchanged on the simulator's loop.

Rules:
- Requests are pipelined; each answer is matched to its request by correlation id and decoded as it arrives. `records`
  fields of an answer are views of the received bytes. After `read_in_place`, these views are valid only until `then`
  (see `call_now`) returns: the next answer is received into the same memory.
- A broker answers one connection in order. A request that times out therefore closes the connection: requests behind
  it would wait as well.
- The write side stops when the transport's buffer is full or too many requests are in flight; the read side refuses a
  frame above `max_response_bytes` before allocating it.
- With `security`, TLS is below all of this, and SASL follows the negotiation of versions. A session that would end is
  renewed on the open connection (KIP-368); requests that are made meanwhile leave after that.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from ottla.client.address import Address as Address  # other modules import it from here
from ottla.client.dialling import dial
from ottla.client.errors import (
    ClientError,
    ConnectionLost,
    NotConnected,
    ProtocolError,
    RequestTimedOut,
    UnlikeListener,
    UnsupportedApi,
)
from ottla.client.in_place import InPlace
from ottla.client.losses import loss
from ottla.client.rest_of_frame import RestOfFrame
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.version import VERSION
from ottla.wire.api import OWN_CLIENT, response_class
from ottla.wire.compile import decoder
from ottla.wire.frame import request_frame
from ottla.wire.header import ResponseHeader, response_header_version
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.types import WireError

if TYPE_CHECKING:
    from ottla.client.security.conversation import SaslSession
    from ottla.client.security.sasl import Sasl
    from ottla.client.security.security import Security

R = TypeVar("R", bound=Response)
D = TypeVar("D", bytes, memoryview)

_LENGTH_SIZE_BYTES = 4
_CORRELATION_SIZE_BYTES = 4
_CORRELATION_MASK = 0x7FFF_FFFF
# If at least so much of an answer is still missing, it is received straight into its frame.
_LARGE_REST_BYTES = 128 * limits.KIB
# The first two bytes of an alert of TLS: what a TLS listener says to a plaintext client.
_TLS_ALERT = 0x1503
_UNSUPPORTED_VERSION = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


class VersionRange(NamedTuple):
    """The first and the last version of one API, both included."""

    low: int
    high: int


class _Pending:
    """A request in flight; `then` is called once, with the answer or with the error."""

    __slots__ = ("answer", "then", "timer", "version")

    def __init__(self, answer: type[Response], version: int, then: Callable[[Any], None]) -> None:
        self.answer = answer
        self.version = version
        self.then = then
        self.timer: asyncio.TimerHandle | None = None


class Connection(asyncio.Protocol):
    """A connection with negotiated API versions; make one with `Connection.open`."""

    def __init__(
        self,
        address: Address,
        *,
        client_id: str,
        request_timeout_ms: int,
        max_response_bytes: int,
        on_lost: Callable[[], None] | None,
    ) -> None:
        self.address = address
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.max_response_bytes = max_response_bytes
        self.versions: dict[int, VersionRange] = {}
        self.api_versions: ApiVersionsResponse | None = None  # the broker's whole answer, features included
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._send: Callable[[bytes], None]  # the transport's, or the one that holds requests back
        self._session: SaslSession | None = None
        self._pending: dict[int, _Pending] = {}
        self._next_correlation_id = 0
        self._negotiations = 0  # requests of the negotiation of versions
        self._failure: ClientError | None = None
        self._on_lost = on_lost
        self._write_paused = False
        self._room: deque[asyncio.Future[None]] = deque()  # requests that wait for room on the write side
        self._tail = b""  # the start of a frame whose length is not complete yet
        self._frame: bytearray | None = None  # a frame that needs several reads
        self._filled = 0

    # --- life ---------------------------------------------------------------------------------------------------

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        client_id: str = "ottla",
        connect_timeout_ms: int = 10_000,
        request_timeout_ms: int = 30_000,
        max_response_bytes: int = limits.RESPONSE_FRAME_BYTES_MAX,
        on_lost: Callable[[], None] | None = None,
        security: "Security | None" = None,
    ) -> "Connection":
        """Connect, negotiate versions, authenticate; a `ClientError` says in one line why that was not possible.

        `on_lost` is called if the open connection ends in any other way than by `close`.
        """
        connection = cls(
            address,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            max_response_bytes=max_response_bytes,
            on_lost=on_lost,
        )
        await dial(address, connection, connect_timeout_ms, None if security is None else security.tls)
        try:
            await connection._negotiate()
            if security is not None and security.sasl is not None:
                await connection._authenticate(security.sasl)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _authenticate(self, sasl: "Sasl") -> None:
        from ottla.client.security.conversation import SaslSession  # most connections need no SASL

        self._session = SaslSession(sasl, self)
        await self._session.begin()

    @property
    def is_open(self) -> bool:
        return self._failure is None and self._transport is not None

    @property
    def in_flight(self) -> int:
        return len(self._pending)

    def close(self) -> None:
        """Close the socket; requests in flight fail with `ConnectionLost`."""
        self._on_lost = None
        self.fail(ConnectionLost(f"the connection to {self.address} was closed"))

    # --- requests -----------------------------------------------------------------------------------------------

    def version_of(self, api: type[Request[Response]], *, at_most: int | None = None) -> int:
        """Return the highest version of the API that both sides support."""
        theirs = self.versions.get(api.key)
        if theirs is None:
            raise UnsupportedApi(f"{self.address} does not serve {api.name}")
        low, high = api.versions
        if api.latest_unstable:
            high -= 1
        high = min(high, theirs.high) if at_most is None else min(high, theirs.high, at_most)
        if high < max(low, theirs.low):
            raise UnsupportedApi(
                f"{self.address} serves {api.name} v{theirs.low}-v{theirs.high}, this client speaks v{low}-v{high}"
            )
        return high

    async def request(self, message: Request[R], *, version: int | None = None, timeout_ms: int | None = None) -> R:
        """Send a request and wait for its answer, in the highest common version by default."""
        return await (await self.submit(message, version=version, timeout_ms=timeout_ms))

    async def submit(
        self, message: Request[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> "asyncio.Future[R]":
        """Wait for room, send, and return the future of the answer: for pipelining requests in a known order."""
        if version is None:
            version = self.version_of(type(message))
        await self.wait_for_room()
        return self.submit_now(message, version=version, timeout_ms=timeout_ms)

    def submit_now(
        self, message: Request[R], *, version: int, timeout_ms: int | None = None, trace_parent: bytes | None = None
    ) -> "asyncio.Future[R]":
        """Send at once; the caller has checked `has_room`. No other request can come between two such calls."""
        future: asyncio.Future[R] = self._loop.create_future()
        then = partial(_settle, future)
        self.call_now(message, then, version=version, timeout_ms=timeout_ms, trace_parent=trace_parent)
        return future

    def call_now(
        self,
        message: Request[R],
        then: Callable[[R | ClientError], None],
        *,
        version: int,
        timeout_ms: int | None = None,
        trace_parent: bytes | None = None,
    ) -> None:
        """Send at once; `then` is called with the answer, before the next one is read, or with a `ClientError`. It
        must not raise.
        """
        timeout_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
        api = type(message)
        pending = _Pending(response_class(api.key), version, then)
        self._pending[self._write(message, version, trace_parent)] = pending
        pending.timer = self._loop.call_later(timeout_ms / 1000, self._expire, api.name, timeout_ms)

    def read_in_place(self) -> None:
        """Receive answers into reused memory from now on; call it only between two answers."""
        if self._transport is not None and self._failure is None and self._frame is None and not self._tail:
            self._transport.set_protocol(InPlace(self))

    async def post(self, message: Request[Response], *, version: int | None = None) -> None:
        """Send a request that the broker never answers (Produce with acks=0)."""
        if version is None:
            version = self.version_of(type(message))
        await self.wait_for_room()
        self.post_now(message, version=version)

    def post_now(self, message: Request[Response], *, version: int) -> None:
        """`post` at once; the caller has checked `has_room`."""
        self._write(message, version)

    def _write(self, message: Request[Response], version: int, trace_parent: bytes | None = None) -> int:
        if self._failure is not None or self._transport is None:
            raise NotConnected(str(self._failure or f"not connected to {self.address}"))
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & _CORRELATION_MASK
        self._send(request_frame(message, version, correlation_id, self.client_id, trace_parent))
        return correlation_id

    # --- what a SASL session needs --------------------------------------------------------------------------------

    def ask_first(self, message: Request[R], *, version: int | None = None) -> "asyncio.Future[R]":
        """Send at once, before the requests that are held back."""
        version = self.version_of(type(message)) if version is None else version
        if self._transport is None:
            raise NotConnected(f"not connected to {self.address}")
        held, self._send = self._send, self._transport.write
        try:
            return self.submit_now(message, version=version)
        finally:
            self._send = held

    def hold(self) -> Callable[[], None]:
        """Hold back the requests from now on; return the function that sends them, and ends that."""
        held: list[bytes] = []
        self._send = held.append

        def release() -> None:
            if self._transport is not None and self._failure is None:
                self._send = self._transport.write
                self._transport.writelines(held)

        return release

    @property
    def has_room(self) -> bool:
        """Whether the write side accepts another request."""
        return not self._write_paused and len(self._pending) < limits.IN_FLIGHT_PER_CONNECTION_MAX

    async def wait_for_room(self) -> None:
        """Wait until `has_room`, or until the connection is lost, which the next write reports."""
        while not self.has_room:
            if self._failure is not None:
                return
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._room.append(waiter)
            await waiter

    def _wake(self) -> None:
        while self._room:
            waiter = self._room.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def _expire(self, name: str, timeout_ms: int) -> None:
        self.fail(RequestTimedOut(f"{self.address} did not answer {name} within {timeout_ms} ms"))

    async def _negotiate(self) -> None:
        """Send ApiVersions in our newest version; a broker that does not support it returns its own range (KIP-511)."""
        version = ApiVersionsRequest.versions[1]
        while True:
            request = ApiVersionsRequest(client_software_name=OWN_CLIENT, client_software_version=VERSION)
            answer = await self.request(request, version=version)
            if answer.error_code != ErrorCode.UNSUPPORTED_VERSION:
                break
            theirs = [api.max_version for api in answer.api_keys if api.api_key == ApiVersionsRequest.key]
            if version == 0 or (theirs and theirs[0] >= version):
                raise UnsupportedApi(f"{self.address} refuses every version of ApiVersions")
            version = max(theirs[0], 0) if theirs else 0
        if answer.error_code:
            raise ProtocolError(f"{self.address} refused ApiVersions with error {answer.error_code}")
        self.api_versions = answer
        self._negotiations = self._next_correlation_id
        self.versions = {api.api_key: VersionRange(api.min_version, api.max_version) for api in answer.api_keys}

    # --- asyncio.Protocol ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send = self._transport.write
        if self._failure is not None:  # closed before the connection was established
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.fail(self._loss(exc))
        if self._on_lost is not None and self.versions:  # without versions it was not open yet
            self._on_lost()

    def _loss(self, error: Exception | None) -> ClientError:
        """Return why the connection was lost."""
        answered = self._next_correlation_id - len(self._pending)
        transport = self._transport
        return loss(
            self.address,
            error,
            at_first=bool(self._pending) and answered <= self._negotiations and self._session is None,
            with_tls=transport is not None and transport.get_extra_info("sslcontext") is not None,
            with_versions=bool(self.versions),
        )

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._wake()

    def data_received(self, data: bytes) -> None:
        self._guarded(self._receive, data)

    def _guarded(self, take: Callable[[D], None], data: D) -> None:
        """Process received data; data that cannot be decoded closes the connection."""
        try:
            take(data)
        except WireError as error:
            self.fail(ProtocolError(f"{self.address} sent an answer that cannot be read: {error}"))
        except ClientError as error:
            self.fail(error)

    def _receive(self, data: bytes) -> None:
        """Cut frames out of the stream: whole ones as views of `data`, split ones assembled once, in place."""
        position = 0
        if self._frame is not None:
            position = min(len(data), len(self._frame) - self._filled)
            self._frame[self._filled : self._filled + position] = memoryview(data)[:position]
            self._filled += position
            if self._filled < len(self._frame):
                return
            frame, self._frame = self._frame, None
            self._answer(memoryview(frame))
        elif self._tail:
            data, self._tail = self._tail + data, b""
        view = memoryview(data)
        while len(data) - position >= _LENGTH_SIZE_BYTES:
            size = self._size_at(view, position)
            position += _LENGTH_SIZE_BYTES
            if len(data) - position < size:
                self._frame = bytearray(size)
                self._filled = len(data) - position
                self._frame[: self._filled] = view[position:]
                if size - self._filled >= _LARGE_REST_BYTES and self._transport is not None:
                    self._transport.set_protocol(RestOfFrame(self, self._frame, self._filled))
                return
            self._answer(view[position : position + size])
            position += size
        self._tail = data[position:]

    def take_frames(self, received: memoryview) -> tuple[int, int]:
        """Read the whole frames at the start of the data that `InPlace` received; return their size and the size of
        the next.
        """
        position, wanted = 0, _LENGTH_SIZE_BYTES
        try:
            while len(received) - position >= _LENGTH_SIZE_BYTES and self._failure is None:
                wanted = self._size_at(received, position) + _LENGTH_SIZE_BYTES
                if len(received) - position < wanted:
                    return position, wanted
                self._answer(received[position + _LENGTH_SIZE_BYTES : position + wanted])
                position += wanted
                wanted = _LENGTH_SIZE_BYTES
        except ClientError as error:
            self.fail(error)
        return position, wanted

    def _size_at(self, view: memoryview, position: int) -> int:
        size = int.from_bytes(view[position : position + _LENGTH_SIZE_BYTES], "big", signed=True)
        is_tls = size >> 16 == _TLS_ALERT and not self.versions
        if not _CORRELATION_SIZE_BYTES <= size <= self.max_response_bytes or is_tls:
            if is_tls:
                raise UnlikeListener(f"{self.address} speaks TLS: set security.protocol=SSL or SASL_SSL")
            raise ProtocolError(f"{self.address} announced an answer of {size} bytes: is it a Kafka listener?")
        return size

    def take_frame(self, frame: bytearray) -> None:
        """Process a complete frame that was received without `data_received`."""
        self._frame = None
        if self._transport is not None:
            self._transport.set_protocol(self)
        self._guarded(self._answer, memoryview(frame))

    def take_up(self, filled: int, data: bytes) -> None:
        """Receive the rest of a frame as usual again."""
        self._filled = filled
        if self._transport is not None:
            self._transport.set_protocol(self)
        self.data_received(data)

    def _answer(self, frame: memoryview) -> None:
        correlation_id = int.from_bytes(frame[:_CORRELATION_SIZE_BYTES], "big", signed=True)
        pending = self._pending.pop(correlation_id, None)
        if pending is None:
            raise ProtocolError(f"{self.address} answered request {correlation_id}, which was never sent")
        if pending.timer is not None:
            pending.timer.cancel()
        try:
            answer = _decode(pending.answer, pending.version, frame)
        except WireError as error:
            name = pending.answer.name
            failure = ProtocolError(f"{self.address} answered {name} v{pending.version} with bad bytes: {error}")
            pending.then(failure)
            raise failure from error
        pending.then(answer)
        if self._room:
            self._wake()

    def fail(self, failure: ClientError) -> None:
        """Close the connection; requests in flight get the failure."""
        if self._failure is not None:
            return
        self._failure = failure
        if self._transport is not None:
            self._transport.abort()
        if self._session is not None:
            self._session.close()
        pending, self._pending = self._pending, {}
        for each in pending.values():
            if each.timer is not None:
                each.timer.cancel()
            each.then(type(failure)(*failure.args))
        self._frame, self._tail = None, b""
        self._wake()


def _settle(future: "asyncio.Future[R]", found: R | ClientError) -> None:
    if future.done():  # the caller may have been cancelled
        return
    if isinstance(found, ClientError):
        future.set_exception(found)
        # Mark the exception as retrieved: after one failure, a caller may ignore the pipelined answers behind it.
        future.exception()
    else:
        future.set_result(found)


def _decode(answer: type[Response], version: int, frame: memoryview) -> Response:
    error_at = _CORRELATION_SIZE_BYTES
    if answer is ApiVersionsResponse and frame[error_at : error_at + 2] == _UNSUPPORTED_VERSION:
        version = 0  # KIP-511: a broker that does not know our version says so in version 0
    _, position = decoder(ResponseHeader, response_header_version(answer.key, version))(frame, 0)
    message, _ = decoder(answer, version)(frame, position)
    return message
