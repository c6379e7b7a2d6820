"""ServerConnection: reads the requests of one client and sends the answers, in order.

Requests are parsed in the receive buffer and handled at once, in the order they came. An answer that is ready joins the
outbound queue; one that must wait takes a slot, and all later answers queue behind it, so that replies are always sent
in request order. All requests found in one read are answered with one send.

A connection stops reading while it has `limits.IN_FLIGHT_PER_CONNECTION_MAX` unanswered requests or answers of
`limits.ANSWERS_HELD_BYTES_MAX`, while sending waits for its peer or the disk (`sending`), while the node has no memory
for its next frame, or while it is held (`Context.hold`): a request keeps its turn and place in the receive buffer, or
the client is over a quota. A fetch behind a consumer's waiting fetch is not started: it could not be answered before
that one, as with Kafka, which handles one request of a connection at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from math import inf
from struct import error as StructError
from typing import TypeVar

from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.server.api import dispatch
from ottla.server.api.context import Context, SaslClient
from ottla.server.api.dispatch import Routes
from ottla.server.api.dispatcher import Dispatcher
from ottla.server.api.request_counts import NOTICED_S, HandledRequest, Phase, count_requests
from ottla.server.loop.garbage_collector import note_unneeded
from ottla.server.loop.later import Disconnect, Large, Later
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.net.departed_client import has_left, stop_all
from ottla.server.net.heavy_turns import HeavyTurns
from ottla.server.net.inbound import FrameTooLarge, InboundBuffer
from ottla.server.net.outbound import Outbound
from ottla.server.net.reply_slot import Reply, ReplySlot, emptied
from ottla.server.net.sending import AnswerSending
from ottla.server.net.tls_outbound import TlsOutbound
from ottla.server.net.tls_socket import TlsSocket
from ottla.server.ports.sockets import Socket
from ottla.server.storage.cold_reads import ColdReads
from ottla.wire.compile import Crowded, WireError
from ottla.wire.header import CLIENT_ID_AT, read_request_head
from ottla.wire.message import Request, Response
from ottla.wire.messages.records.fetch import FetchRequest

log = logging.getLogger(__name__)

T = TypeVar("T")
_FETCH = FetchRequest.key.to_bytes(2, "big")


class ServerConnection:
    def __init__(
        self,
        sock: Socket,
        runtime: Runtime,
        cold: ColdReads,
        dispatcher: Dispatcher,
        new_context: Callable[[ServerConnection], Context],
        memory: RequestMemory,
        max_frame_bytes: int,
        on_close: Callable[[ServerConnection], None],
    ) -> None:
        self.sock, loop = sock, runtime.loop
        self.context = new_context(self)
        self.closed = self._reading = self._waits_for_memory = self._flush_due = self._look_due = False
        self.last_active = self._looked_at = loop.time()
        self._loop, self.runtime = loop, runtime
        self._slices, self._turns = runtime.slices, HeavyTurns(runtime)
        self._fileno, self._on_close = sock.fileno(), on_close
        self._memory = memory  # that of `_inbound`
        self._inbound = InboundBuffer(memory, max_frame_bytes)
        self._tls = sock if isinstance(sock, TlsSocket) else None
        self._outbound = Outbound() if self._tls is None else TlsOutbound()
        self._sending = AnswerSending(sock, loop, cold, self._outbound, self._sent_on, self._lost)
        self._slots: deque[ReplySlot] = deque()
        self._poll: ReplySlot | None = None  # the slot of a consumer's waiting fetch
        self._has_left_over = False  # whether whole frames may be left in the buffer, for `_continue` to handle
        self._raw_client_id = b""
        self._clock_s = runtime.clock_s
        self.begun_s = 0.0  # when the request that is being handled was begun
        self.late_s = inf  # when the requests in the buffer will have waited for NOTICED_S
        self._ended_s = 0.0  # when the last request was handled
        self._handled: list[HandledRequest] = []  # and not counted yet
        self._routes, self._forwarding, self.around, self._quotas, self.slow = dispatcher
        self._made_routes = self._routes.made
        self._resume_reading()

    @property
    def sasl(self) -> SaslClient | None:
        return None

    def serve(self, routes: Routes, memory: RequestMemory, max_frame_bytes: int) -> None:
        """Serve these APIs from the next request on, in frames of at most that size, which use that memory."""
        self._routes, self._made_routes = routes, routes.made
        self._inbound.max_frame_bytes = max_frame_bytes
        if memory is not self._memory:
            assert not self._waits_for_memory, "nothing is read while a request keeps its turn"
            self._memory = memory
            self._inbound.move_to(memory)

    # Reading

    def _resume_reading(self) -> None:
        if not (self._reading or self.closed or self._sending.blocked or self._waits_for_memory or self.context.holds):
            self._reading = True
            self._loop.add_reader(self._fileno, self._wake)
            if self._tls is not None and self._tls.has_more:
                self._look_soon()

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fileno)

    def _wake(self) -> None:
        """Read now, or, if the last turn was long, when it is this connection's turn."""
        if not self._turns.begin(self._take_turn):
            self._pause_reading()

    def _take_turn(self) -> bool:
        self._resume_reading()
        if self._reading:
            self._readable()
        return self.begun_s >= self._turns.begun_s

    def _readable(self) -> bool:
        """Read the available bytes, within bounds, and handle their requests; return whether there were any.

        A read that filled the buffer usually leaves more to read: batches that arrived together are all appended before
        followers and producers are notified, once instead of for each batch.
        """
        left_bytes = limits.RECEIVE_PER_TURN_BYTES
        while left_bytes > 0:
            space = self._inbound.space()
            if space is None:
                self._pause_reading()
                self._waits_for_memory = True
                self._memory.wait(self._inbound.wish_bytes, self._inbound, self._granted)
                break
            try:
                received = self.sock.recv_into(space)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                received = 0
            if received == 0:
                self._ended()
                return False
            self._inbound.end += received
            self.last_active = self._loop.time()
            self._work()
            left_bytes -= received
            if not self._reading or received < len(space) or self._turns.is_over():
                break
        if self._tls is not None and self._tls.has_more:
            self._turns.judge()
            self._look_soon()
        return left_bytes < limits.RECEIVE_PER_TURN_BYTES

    def _ended(self) -> None:
        if self._tls is None:
            self.close()
        else:  # this takes a while, and many clients may leave at once
            self._pause_reading()
            self._slices.soon(self.close)

    def _look(self) -> bool:
        """Read although the loop did not report the socket as readable.

        When a peer resets its connection, uvloop calls the reader once more and never again; if that call found data,
        only this read finds the error behind it.
        """
        self._look_due = False
        if self._reading and self._readable() and not self.closed:
            self._look_soon()
        return self.begun_s >= self._turns.begun_s

    def _look_soon(self) -> None:
        if not self._look_due:
            self._look_due = True
            self._turns.soon(self._look)

    def _granted(self, size_bytes: int) -> None:
        self._waits_for_memory = False
        self._inbound.granted(size_bytes)
        self._turns.soon(self._continue)

    def _work(self) -> None:
        """Handle every whole frame in the buffer, then send the answers."""
        try:
            self._handle_frames()
        except Exception as error:
            self._ended_s = self._clock_s()
            self.fail(error)
        finally:
            if self._handled:
                count_requests(self._handled, self._ended_s)

    def fail(self, error: BaseException) -> None:
        if isinstance(error, FrameTooLarge | Disconnect):
            log.info("closing %s: %s", self.context.connection.remote_address, error)
            self._flush()
        else:  # a bug of the server
            log.error("a request of %s failed", self.context.connection.remote_address, exc_info=error)
        self.close()

    def _handle_frames(self) -> None:
        inbound = self._inbound
        self._has_left_over = False
        now_s = self._clock_s()
        until_s = now_s + limits.REQUESTS_PER_TURN_S
        self.late_s = min(self.late_s, now_s + NOTICED_S)
        for _ in range(limits.REQUESTS_PER_TURN_MAX):
            if self._has_enough() or now_s > until_s:
                break
            frame = inbound.next_frame()
            if frame is None:
                self.late_s = inf
                self._flush()
                if self._memory.waiting:
                    inbound.shrink()
                return
            if self._poll is not None and frame[:2] == _FETCH:
                self._put_back(frame)
                return
            self.begun_s = now_s
            self._handle(frame)
            if self.closed:
                return
            now_s = self._clock_s()
            self._ended_s = now_s
        self._has_left_over = True
        self._flush()
        self._pause_reading()  # if it is resumed before `_continue`, it finds nothing new
        if not (self.closed or self._sending.blocked or self._has_enough()):
            self._turns.judge()
            self._turns.soon(self._continue)  # after other connections had their turn
        # Otherwise `_sent_on`, `answered` or `go_on` continues.

    def _put_back(self, fetch: memoryview) -> None:
        """Delay a fetch until the one before it is answered (`_fill`). Reading goes on while that needs no memory,
        because only reading detects that the peer is gone.
        """
        self._inbound.put_back(fetch)
        self._has_left_over = True
        self.late_s = inf  # as Kafka, which does not read it yet
        self._flush()
        if not self._inbound.has_room:
            self._pause_reading()

    def _has_enough(self) -> bool:
        """Return whether answers must be sent, or a turn must end, before more requests are handled."""
        return (
            self.context.holds > 0
            or len(self._slots) >= limits.IN_FLIGHT_PER_CONNECTION_MAX
            or self._outbound.held_bytes > limits.ANSWERS_HELD_BYTES_MAX
        )

    def _pin(self) -> None:
        """Keep the receive buffer, and its reserved memory, while a request in it is being carried out."""
        self._inbound.pinned = self.context.holds > 0

    def has_left(self) -> bool:
        """Return whether the peer has closed its end, for long work that only this client needs."""
        return has_left(self.sock)

    def go_on(self) -> None:
        """Continue after the request that kept its turn."""
        self._pin()
        if self.closed:
            self._part()
        elif (self._has_left_over or not self._reading) and not self._sending.blocked:
            self._turns.soon(self._continue)

    def _handle(self, frame: memoryview) -> None:
        try:
            key, version, correlation_id, head_end = read_request_head(frame)
            route = self._made_routes.get(key << 16 | version)
            if route is None:
                if self._loads_first(key, frame):
                    return
                route = self._routes.find(key, version)
            if route is not None:
                raw_client_id = frame[CLIENT_ID_AT:head_end]
                if raw_client_id != self._raw_client_id:
                    self._raw_client_id = bytes(raw_client_id)
                    self.context.client_id = self._raw_client_id.decode()
                request, _ = route.decode(frame, head_end)
        except Crowded:
            assert route is not None, "it was about to be decoded"
            self._handle_later(self._decode_slowly(route, frame, head_end, correlation_id))
            return
        except (WireError, StructError, IndexError, UnicodeDecodeError) as error:
            raise Disconnect(f"a malformed request: {error}") from error
        if route is not None:
            self._serve(route, request, frame, correlation_id)
            return
        route, unserved = dispatch.unserved(key, version, self._routes)
        self._slot(route, correlation_id).answered(unserved)

    def _serve(self, route: dispatch.Route, request: Request[Response], frame: memoryview, correlation_id: int) -> None:
        self.context.request_version = route.version
        quotas = self._quotas
        charge = None if quotas is None or not quotas.active else quotas.begin(self.context, request, len(frame))
        if self.around is not None:
            answer = self.around(route, self._forwarding, request, frame, self)
        elif route.forwarded and self._forwarding is not None:
            answer = self._forwarding.handle(route, request, frame, self.context)
        else:
            answer = route.handler(request, self.context)
        if charge is not None:
            answer = charge.settled(answer)  # may mute this connection (`Context.hold`)
        counts = route.counts
        if counts is not None:
            if counts.followers is not None and self.context.is_follower:  # as `counts_of`, without the call
                counts = counts.followers
            self._handled.append((counts, answer, self.begun_s))
            if self.begun_s > self.late_s:
                counts.took_long(Phase.QUEUED, self.begun_s - self.late_s + NOTICED_S)
        if not isinstance(answer, Response):
            if answer is not None:
                self._wait_for(route, correlation_id, answer)
            self._pin()
        elif self._slots:
            parts = self._outbound.hold(route.reply(answer, correlation_id))
            self._slot(route, correlation_id).store(parts, self._clock_s, is_next=False)
        else:
            self._outbound.add(route.reply(answer, correlation_id))
            if counts is not None:
                self._sending.unsent.append(counts)
        if self.slow is not None and (answer is None or isinstance(answer, Response)):
            self.slow.handled(route, self.context, self._clock_s() - self.begun_s)

    def _loads_first(self, key: int, frame: memoryview) -> bool:
        """Let the first request of its kind wait, with its turn, until a worker has imported the handler."""
        if self.runtime.executor is None or not (self._routes.serves(key) and dispatch.is_unloaded(key)):
            return False

        async def load() -> None:
            await self.runtime.in_worker(dispatch.load_handler, key)
            if not self.closed:
                self._timed(lambda: self._handle(frame))

        self._handle_later(load())
        return True

    def _handle_later(self, handling: Awaitable[None]) -> None:
        task = self._slices.begin(handling)
        task.add_done_callback(self._decoded)
        self.keep_turn(task)

    async def _decode_slowly(
        self, route: dispatch.Route, frame: memoryview, head_end: int, correlation_id: int
    ) -> None:
        await self._slices.turn()
        try:
            request = await self._slices.finish(route.decode_in_steps(frame, head_end))
        except WireError as error:
            raise Disconnect(f"a malformed request: {error}") from error
        if not self.closed:  # otherwise no client is left to answer
            self._timed(lambda: self._serve(route, request, frame, correlation_id))

    def _timed(self, handle: Callable[[], None]) -> None:
        """Handle a request outside of `_handle_frames`, which takes the times of the others."""
        self.begun_s = self._clock_s()
        handle()
        count_requests(self._handled, self._clock_s())

    def _decoded(self, task: asyncio.Future[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None:
            self._flush()  # `go_on` does not if the client has to wait before its next request
        elif not self.closed:
            self.fail(error)

    # Answers that wait

    def _slot(self, route: dispatch.Route, correlation_id: int) -> ReplySlot:
        """Return a new slot at the end of the order of replies."""
        self._slots.append(ReplySlot(route, correlation_id, self))
        return self._slots[-1]

    def _wait_for(
        self, route: dispatch.Route, correlation_id: int, answer: Large[Response] | Later[Reply] | Awaitable[Reply]
    ) -> None:
        slot = self._slot(route, correlation_id)
        if route.endpoint.key == FetchRequest.key and not self.context.next_fetch_ends_wait:
            self._poll = slot
        slot.wait_for(answer)

    def keep_turn(self, task: asyncio.Future[T]) -> None:
        """Handle no other request until `task`, which works for one in slices, is done."""
        self.context.hold_until(task)
        self._pin()

    def encoding(self, steps: Generator[None, None, list[dispatch.Part]]) -> Awaitable[list[dispatch.Part]]:
        """Return the parts of a large answer, which are made in slices."""
        making = self.runtime.slices.finish(steps)
        return making if self._quotas is None else self._quotas.metered(self.context, making)

    def fill(self, slot: ReplySlot, parts: list[dispatch.Part]) -> None:
        """Store a reply in its slot; it is sent when those before it are."""
        slots = self._slots
        slot.store(self._outbound.hold(parts), self._clock_s, is_next=slots[0] is slot)
        if slot is self._poll:
            self._poll = None
        self.last_active = self._loop.time()
        if slots[0] is not slot:
            return
        while slots and (ready := slots[0].release(self._clock_s)) is not None:
            self._outbound.queue.extend(ready)
            self._sending.join(slots.popleft().counts)
        if not slots:
            self._flush()
        elif not self._flush_due:
            # The caller usually sets the next answers right after this one: they are sent together.
            self._flush_due = True
            self._loop.call_soon(self._flush_together)
        if (self._has_left_over or not self._reading) and not self._sending.blocked:
            self._turns.soon(self._continue)

    def _flush_together(self) -> None:
        self._flush_due = False
        self._flush()

    def _continue(self) -> bool:
        is_served = self._reading and not self._has_left_over
        if not (self.closed or is_served or self._sending.blocked or self.context.holds):
            self._resume_reading()
            self._work()
        return self.begun_s >= self._turns.begun_s

    # Writing

    def _flush(self) -> None:
        if not self.closed:
            if self._quotas is None or not self._quotas.times_requests:
                self._sending.flush()
            else:
                self._quotas.timed(self.context, self._sending.flush)
            if self._sending.blocked:
                # The peer or the disk is slow: no more requests are read until its answers are sent.
                self._pause_reading()

    def _sent_on(self, free: bool) -> None:
        self.last_active = self._loop.time()
        if free:
            self._turns.begin(self._continue)

    def _lost(self, error: Exception) -> None:
        if isinstance(error, StorageError):
            log.error("closing %s: %s", self.context.connection.remote_address, error)
        self.close()

    # Housekeeping

    def tidy(self, now: float, max_idle_s: float) -> None:
        """Close an idle or stalled connection, give back a large buffer; called about once a second."""
        quiet_s = now - self.last_active
        # A client that waits for an answer is not idle; one that does not read its answers is.
        if 0 <= max_idle_s < quiet_s and (self._sending.blocked or not self._slots):
            self.close()
        elif self._inbound.holds_up(now, is_read=self._reading and not self._has_left_over):
            log.warning("closing %s: it is slow, and others wait for memory", self.context.connection.remote_address)
            self.close()
        elif quiet_s > limits.BUFFER_KEEP_S or self._memory.waiting:
            self._inbound.shrink()
        if self._looked_at != self.last_active and not self._look_due:
            self._looked_at = self.last_active
            self._turns.begin(self._look)

    def close(self) -> None:
        if self._flush_due:
            self._flush_together()  # send the answers that are ready
        if self.closed:
            return
        self.closed = True
        self._pause_reading()
        self._sending.close()
        self.sock.close()
        if self._waits_for_memory:
            self._memory.forget(self._inbound)
        self._pin()
        if not self._inbound.pinned:
            self._part()
        self._poll = None
        stop_all((*emptied(self._slots), *self.context.when_closed.values()), self.context.connection.remote_address)
        self.context.when_closed.clear()
        self._on_close(self)
        note_unneeded(self)

    def _part(self) -> None:
        """Break reference cycles: the garbage collector may not come to examine this connection for a long time."""
        self._inbound.drop()
        self.context.end()
