"""Connection: reads the requests of one client and sends the answers, in order.

Requests are parsed in the receive buffer and handled at once, in the order they came. An answer that is ready joins the
outbound queue; one that must wait takes a slot, and all later answers queue behind it, so that replies are always sent
in request order. All requests found in one read are answered with one send.

A connection stops reading while it has `limits.IN_FLIGHT_PER_CONNECTION_MAX` unanswered requests or answers of
`limits.ANSWERS_HELD_BYTES_MAX`, while sending waits for its peer or the disk (`sending`), while the node has no memory
for its next frame, or while a request keeps its turn (`Context.hold`) and so its place in the receive buffer. It never
delays another connection. A fetch behind a consumer's waiting fetch is not started: it could not be answered before
that one, as with Kafka, which handles one request of a connection at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from struct import Struct
from struct import error as StructError
from typing import TypeVar

from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.server.api import dispatch
from ottla.server.api.context import Context
from ottla.server.api.dispatcher import Dispatcher, intercepted
from ottla.server.api.forwarded_answer import Forwarded
from ottla.server.loop.later import FAILED, NO_ANSWER, Disconnect, Large, Later, Sliced
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.net.departed_client import has_left
from ottla.server.net.inbound import FrameTooLarge, InboundBuffer
from ottla.server.net.reply_slot import Reply, ReplySlot
from ottla.server.net.sending import AnswerSending
from ottla.server.ports.sockets import Socket
from ottla.server.storage.cold_reads import ColdReads
from ottla.wire.compile import Crowded, WireError
from ottla.wire.message import Request, Response
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.varint import skip_tags

log = logging.getLogger(__name__)

T = TypeVar("T")

_HEAD = Struct(">hhih")  # key, version, correlation id, length of the client id
_FETCH = FetchRequest.key.to_bytes(2, "big")
_LOADED = dispatch.ENDPOINTS


class Connection:
    def __init__(
        self,
        sock: Socket,
        runtime: Runtime,
        cold: ColdReads,
        dispatcher: Dispatcher,
        new_context: Callable[[Connection], Context],
        memory: RequestMemory,
        max_frame_bytes: int,
        on_close: Callable[[Connection], None],
    ) -> None:
        loop = runtime.loop
        self.sock = sock
        self.context = new_context(self)
        self.closed = False
        self.last_active = loop.time()
        self._looked_at = self.last_active
        self._loop = loop
        self._runtime = runtime
        self._slices = runtime.slices
        self._fileno = sock.fileno()
        self._memory = memory
        self._inbound = InboundBuffer(memory, max_frame_bytes)
        self._sending = AnswerSending(sock, loop, cold, self._sent_on, self._lost)
        self._outbound = self._sending.outbound
        self._slots: deque[ReplySlot] = deque()
        self._poll: ReplySlot | None = None  # the slot of a consumer's waiting fetch
        self._has_put_back = False  # whether another fetch was put back behind that one
        self._raw_client_id = b""
        self._reading = False
        self._waits_for_memory = False
        self._flush_due = False
        self._clock_s = runtime.clock_s
        self._on_close = on_close
        self._route, self._forwarding, self._intercept = dispatcher
        self._resume_reading()

    # Reading

    def _resume_reading(self) -> None:
        if not (self._reading or self.closed or self._sending.blocked or self._waits_for_memory or self.context.holds):
            self._reading = True
            self._loop.add_reader(self._fileno, self._readable)

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fileno)

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
                self.close()
                return False
            self._inbound.end += received
            self.last_active = self._loop.time()
            self._work()
            left_bytes -= received
            if received < len(space) or not self._reading:
                break
        return left_bytes < limits.RECEIVE_PER_TURN_BYTES

    def _look(self) -> None:
        """Read although the loop did not report the socket as readable.

        When a peer resets its connection, uvloop calls the reader once more and never again; if that call found data,
        only this read finds the error behind it.
        """
        if self._reading and self._readable() and not self.closed:
            self._loop.call_soon(self._look)

    def _granted(self, size_bytes: int) -> None:
        self._waits_for_memory = False
        self._inbound.granted(size_bytes)
        # Not inline: the caller, which released the memory, is in the middle of its own work.
        self._loop.call_soon(self._continue)

    def _work(self) -> None:
        """Handle every whole frame in the buffer, then send the answers."""
        try:
            self._handle_frames()
        except (FrameTooLarge, Disconnect) as reason:
            log.info("closing %s: %s", self.context.connection.remote_address, reason)
            self._flush()
            self.close()
        except Exception:
            # A bug of the server: the client loses this connection, all others go on.
            log.exception("a request of %s failed", self.context.connection.remote_address)
            self.close()

    def _handle_frames(self) -> None:
        inbound = self._inbound
        until_s = self._clock_s() + limits.REQUESTS_PER_TURN_S
        for _ in range(limits.REQUESTS_PER_TURN_MAX):
            if self._has_enough() or self._clock_s() > until_s:
                break
            frame = inbound.next_frame()
            if frame is None:
                self._flush()
                if self._memory.waiting:
                    inbound.shrink()
                return
            if self._poll is not None and frame[:2] == _FETCH:
                self._put_back(frame)
                return
            self._handle(frame)
            if self.closed:
                return
        self._flush()
        self._pause_reading()
        if not (self.closed or self._sending.blocked or self._has_enough()):
            self._loop.call_soon(self._continue)  # after other connections had their turn
        # Otherwise `_sent_on`, `_answered` or `go_on` continues.

    def _put_back(self, fetch: memoryview) -> None:
        """Delay a fetch until the one before it is answered (`_fill`). Reading goes on while that needs no memory,
        because only reading detects that the peer is gone.
        """
        self._inbound.put_back(fetch)
        self._has_put_back = True
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

    def _hold_until(self, task: asyncio.Future[T]) -> None:
        """Keep the turn of a request that is handled in slices until `task` is done."""
        self.context.hold()
        self._pin()
        task.add_done_callback(lambda _: self.context.let_go())

    def has_left(self) -> bool:
        """Return whether the peer has closed its end, for long work that only this client needs."""
        return has_left(self.sock)

    def go_on(self) -> None:
        """Continue after the request that kept its turn."""
        self._pin()
        if self.closed:
            self._inbound.release()
        elif not self._reading and not self._sending.blocked:
            # Not inline: the caller, which carried out the request, is in the middle of its own work.
            self._loop.call_soon(self._continue)

    def _handle(self, frame: memoryview) -> None:
        try:
            key, version, correlation_id, client_id_size = _HEAD.unpack_from(frame)
            if key not in _LOADED and self._loads_first(key, frame):
                return
            route = self._route(key, version)
            if route is not None:
                position = 10 + client_id_size if client_id_size > 0 else 10
                raw_client_id = frame[10:position]
                if raw_client_id != self._raw_client_id:
                    self._learn_client_id(raw_client_id)
                if route.flexible_request:
                    tags = frame[position]
                    position = skip_tags(frame, position + 1, tags) if tags else position + 1
                request, _ = route.decode(frame, position)
        except Crowded:
            assert route is not None, "it was about to be decoded"
            self._decode_in_slices(route, frame, position, correlation_id)
            return
        except (WireError, StructError, IndexError, UnicodeDecodeError) as error:
            raise _malformed(error) from error
        if route is not None:
            self._serve(route, request, frame, correlation_id)
            return
        route, unserved = dispatch.unserved(key, version, self._route)
        self._answered(self._slot(route, correlation_id), unserved)

    def _serve(self, route: dispatch.Route, request: Request[Response], frame: memoryview, correlation_id: int) -> None:
        self.context.request_version = route.version
        if self._intercept is not None:
            answer = intercepted(self._intercept, route, self._forwarding, request, frame, self.context)
        elif route.forwarded and self._forwarding is not None:
            answer = self._forwarding.handle(route, request, frame, self.context)
        else:
            answer = route.handler(request, self.context)
        if not isinstance(answer, Response):
            if answer is not None:
                self._wait_for(route, correlation_id, answer)
            self._pin()
        elif self._slots:
            self._slot(route, correlation_id).parts = self._outbound.hold(route.reply(answer, correlation_id))
        else:
            self._outbound.add(route.reply(answer, correlation_id))

    def _loads_first(self, key: int, frame: memoryview) -> bool:
        """Let the first request of its kind wait, with its turn, until a worker has imported the handler."""
        if self._runtime.executor is None or not dispatch.is_unloaded(key):
            return False

        async def load() -> None:
            await self._runtime.in_worker(dispatch.load_handler, key)
            if not self.closed:
                self._handle(frame)

        task = self._slices.begin(load())
        task.add_done_callback(self._decoded)
        self._hold_until(task)
        return True

    def _decode_in_slices(self, route: dispatch.Route, frame: memoryview, position: int, correlation_id: int) -> None:
        task = self._slices.begin(self._decode_slowly(route, frame, position, correlation_id))
        task.add_done_callback(self._decoded)
        self._hold_until(task)

    async def _decode_slowly(
        self, route: dispatch.Route, frame: memoryview, position: int, correlation_id: int
    ) -> None:
        slices = self._slices
        await slices.turn()
        try:
            request = await slices.finish(route.decode_in_steps(frame, position))
        except WireError as error:
            raise _malformed(error) from error
        if not self.closed:  # otherwise no client is left to answer
            self._serve(route, request, frame, correlation_id)

    def _decoded(self, task: asyncio.Future[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None or self.closed:
            return
        if isinstance(error, Disconnect):
            log.info("closing %s: %s", self.context.connection.remote_address, error)
            self._flush()
            self.close()
        else:
            log.error("a request of %s failed", self.context.connection.remote_address, exc_info=error)
            self.close()

    def _learn_client_id(self, raw: memoryview) -> None:
        self.context.client_id = bytes(raw).decode()
        self._raw_client_id = bytes(raw)

    # Answers that wait

    def _slot(self, route: dispatch.Route, correlation_id: int) -> ReplySlot:
        """Return a new slot at the end of the order of replies."""
        slot = ReplySlot(route, correlation_id)
        self._slots.append(slot)
        return slot

    def _wait_for(
        self, route: dispatch.Route, correlation_id: int, answer: Large[Response] | Later[Reply] | Awaitable[Reply]
    ) -> None:
        slot = self._slot(route, correlation_id)
        if route.endpoint.key == FetchRequest.key and not self.context.next_fetch_ends_wait:
            self._poll = slot
        if isinstance(answer, Later):
            slot.give_up = answer.abandon
            answer.then(lambda response: self._answered(slot, response))
            return
        if isinstance(answer, Large):
            self._encode_in_slices(slot, answer)
            return
        if isinstance(answer, Sliced):
            task = self._slices.begin(answer.making)
            slot.give_up = None if answer.changes else task.cancel
            self._hold_until(task)
        else:
            task = asyncio.ensure_future(answer, loop=self._loop)
            slot.give_up = task.cancel
        task.add_done_callback(lambda done: self._task_done(slot, done))

    def _task_done(self, slot: ReplySlot, task: asyncio.Future[Reply]) -> None:
        if task.cancelled():
            self.close()
        elif task.exception() is not None:
            log.error("a request of %s failed", self.context.connection.remote_address, exc_info=task.exception())
            self.close()
        else:
            self._answered(slot, task.result())

    def _answered(self, slot: ReplySlot, response: Reply) -> None:
        if self.closed:
            return
        if response is FAILED:
            self.close()
            return
        if isinstance(response, Large):
            self._encode_in_slices(slot, response)
            return
        parts: list[dispatch.Part]
        try:
            if response is NO_ANSWER:
                parts = []
            elif isinstance(response, Forwarded):
                parts = [response.frame()]
            else:
                parts = slot.route.reply(response, slot.correlation_id)
        except Exception:
            # The caller that set the answer (a producer's append, say) must not get this exception.
            log.exception("an answer to %s could not be written", self.context.connection.remote_address)
            self.close()
            return
        self._fill(slot, parts)

    def _encode_in_slices(self, slot: ReplySlot, answer: Large[Response]) -> None:
        slices = self._slices
        steps = slot.route.reply_in_steps(answer.response, slot.correlation_id)
        task = asyncio.ensure_future(slices.finish(steps), loop=self._loop)
        slot.give_up = task.cancel
        task.add_done_callback(lambda done: self._encoded(slot, done))

    def _encoded(self, slot: ReplySlot, task: asyncio.Task[list[dispatch.Part]]) -> None:
        if self.closed or task.cancelled():
            return
        error = task.exception()
        if error is not None:
            log.error("an answer to %s could not be written", self.context.connection.remote_address, exc_info=error)
            self.close()
        else:
            self._fill(slot, task.result())

    def _fill(self, slot: ReplySlot, parts: list[dispatch.Part]) -> None:
        """Store a reply in its slot; it is sent when those before it are."""
        slots = self._slots
        slot.parts = self._outbound.hold(parts)
        if slot is self._poll:
            self._poll = None
        self.last_active = self._loop.time()
        if slots[0] is not slot:
            return
        while slots and (ready := slots[0].parts) is not None:
            self._outbound.queue.extend(ready)
            slots.popleft()
        if not slots:
            self._flush()
        elif not self._flush_due:
            # The caller usually sets the next answers right after this one: they are sent together.
            self._flush_due = True
            self._loop.call_soon(self._flush_together)
        if (self._has_put_back or not self._reading) and not self._sending.blocked:
            # Not inline: the caller, which set the answer, is in the middle of its own work.
            self._loop.call_soon(self._continue)

    def _flush_together(self) -> None:
        self._flush_due = False
        self._flush()

    def _continue(self) -> None:
        is_served = self._reading and not self._has_put_back
        if not (self.closed or is_served or self._sending.blocked or self.context.holds):
            self._has_put_back = False
            self._resume_reading()
            self._work()

    # Writing

    def _flush(self) -> None:
        if not self.closed:
            self._sending.flush()
            if self._sending.blocked:
                # The peer or the disk is slow: no more requests are read until its answers are sent.
                self._pause_reading()

    def _sent_on(self, free: bool) -> None:
        self.last_active = self._loop.time()
        if free:
            self._continue()

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
        elif self._inbound.holds_up(now, is_read=self._reading and not self._has_put_back):
            log.warning("closing %s: it is slow, and others wait for memory", self.context.connection.remote_address)
            self.close()
        elif quiet_s > limits.BUFFER_KEEP_S or self._memory.waiting:
            self._inbound.shrink()
        if self._looked_at != self.last_active:
            self._looked_at = self.last_active
            self._look()

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
            self._inbound.release()
        for slot in self._slots:
            if slot.give_up is not None:
                slot.give_up()
        self._slots.clear()
        for what in tuple(self.context.when_closed.values()):
            what()
        self._on_close(self)


def _malformed(error: Exception) -> Disconnect:
    return Disconnect(f"a malformed request: {error}")
