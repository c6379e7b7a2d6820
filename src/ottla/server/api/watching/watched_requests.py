"""WatchedRequests: sees the requests of clients that somebody watches, on a node of which it is asked (ADR 0054).

A watch begins with the first question for it, and ends `limits.REQUEST_WATCH_S` seconds after the last one. While there
is any, a `RequestEye` stands around the handling of requests on every connection, new ones included, because a client
id is known only by its requests. When the last watch ends it is taken away, and nothing is left on any connection.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Protocol

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import Route
from ottla.server.api.dispatcher import Around, RequestInTurn, handled
from ottla.server.api.forwarding.forwarded_answer import Forwarded
from ottla.server.api.forwarding.forwarding import Forwarding
from ottla.server.api.request_counts import NOTICED_S, finders_of_errors
from ottla.server.api.watching.seen_answer import LEFT, SeenAnswer
from ottla.server.api.watching.seen_requests import ClientWanted, PresentClient, RequestWatch, SeenRequest
from ottla.server.loop.later import Answer, Large
from ottla.server.loop.runtime import Runtime
from ottla.wire import api
from ottla.wire.compile import WireError, decoder
from ottla.wire.message import Request, Response

_CHARS = limits.REQUEST_SEEN_CHARS_MAX
_CORRELATION_ID_BYTES = 4


class WatchableConnection(Protocol):
    context: Context
    around: Around | None


class WatchableConnections(Protocol):
    """The connections of a node."""

    @property
    def connections(self) -> Iterable[WatchableConnection]: ...

    def watch_arrivals(self, watch: Callable[[WatchableConnection], None] | None) -> None:
        """Call `watch` with every connection from now on that enters; None ends it."""


class WatchedRequests:
    def __init__(self, runtime: Runtime, connections: WatchableConnections) -> None:
        self.runtime = runtime
        self.watches: dict[ClientWanted, RequestWatch] = {}
        self._connections = connections
        self._next_look: asyncio.TimerHandle | None = None

    def watch(self, wanted: ClientWanted, asker: str) -> RequestWatch:
        asked = [watch for watch in self.watches.values() if asker in watch.asked_s and watch.wanted != wanted]
        if len(asked) >= limits.REQUEST_WATCHES_PER_ASKER_MAX:
            text = f"You watch the requests of {len(asked)} clients already: stop asking for one, and try again later."
            raise ApiError(ErrorCode.POLICY_VIOLATION, text)
        found = self.watches.get(wanted)
        if found is None:
            if len(self.watches) >= limits.REQUEST_WATCHES_MAX:
                text = f"The requests of {limits.REQUEST_WATCHES_MAX} clients are watched already: try again later."
                raise ApiError(ErrorCode.POLICY_VIOLATION, text)
            if not self.watches:
                self._begin()
            found = self.watches[wanted] = RequestWatch(wanted, self.runtime.now_ms())
        found.asked_s[asker] = self.runtime.loop.time()
        return found

    def clients(self) -> list[PresentClient]:
        present: Counter[tuple[str, str]] = Counter()
        for each in islice(self._connections.connections, limits.REQUEST_CLIENTS_CONNECTIONS_MAX):
            present[each.context.client_id[:_CHARS], str(each.context.principal)[:_CHARS]] += 1
        return [PresentClient(*who, count) for who, count in present.most_common(limits.REQUEST_CLIENTS_MAX)]

    def close(self) -> None:
        """End all watches: the node stops."""
        if self._next_look is not None:
            self._next_look.cancel()
        if self.watches:
            self.watches.clear()
            self._end()

    def _begin(self) -> None:
        for each in self._connections.connections:
            self._put_on(each)
        self._connections.watch_arrivals(self._put_on)
        self._look_later()

    def _put_on(self, connection: WatchableConnection) -> None:
        connection.around = RequestEye(self, connection.around)

    def _look_later(self) -> None:
        self._next_look = self.runtime.loop.call_later(limits.REQUEST_WATCH_S / 5, self._look)

    def _look(self) -> None:
        """Forget who has not asked lately, and end the watches that nobody has asked for."""
        ended_s = self.runtime.loop.time() - limits.REQUEST_WATCH_S
        for watch in [*self.watches.values()]:
            watch.asked_s = {asker: at_s for asker, at_s in watch.asked_s.items() if at_s > ended_s}
            if not watch.asked_s:
                del self.watches[watch.wanted]
        if self.watches:
            self._look_later()
        else:
            self._end()

    def _end(self) -> None:
        self._connections.watch_arrivals(None)
        for connection in self._connections.connections:
            if isinstance(connection.around, RequestEye):
                connection.around = connection.around.inner


class RequestEye:
    """Stands around the handling of the requests of one connection while there are watches."""

    __slots__ = ("_log", "inner")

    def __init__(self, log: WatchedRequests, inner: Around | None) -> None:
        self._log = log
        self.inner = inner

    def __call__(
        self,
        route: Route,
        forwarding: Forwarding | None,
        request: Request[Response],
        frame: memoryview,
        turn: RequestInTurn,
    ) -> Answer[object]:
        handle = self.inner or handled
        watches = [each for each in self._log.watches.values() if _is_of(turn.context, each.wanted)]
        if not watches:
            return handle(route, forwarding, request, frame, turn)
        seen = _RequestInSight(route, turn, len(frame), watches, self._log.runtime)
        try:
            answer = handle(route, forwarding, request, frame, turn)
        except BaseException as error:
            seen.ended(type(error).__name__)
            raise
        return seen.returned(answer)


class _RequestInSight(SeenAnswer):
    """One request of a watched client, until its answer is ready."""

    def __init__(
        self, route: Route, turn: RequestInTurn, size_bytes: int, watches: list[RequestWatch], runtime: Runtime
    ) -> None:
        self._route = route
        self._watches = watches
        self._clock_s = runtime.clock_s
        self._begun_s = self._returned_s = turn.begun_s
        self._queue_s = max(turn.begun_s - turn.late_s + NOTICED_S, 0.0)
        self._at_ms = runtime.now_ms() - round(self._queue_s * 1000)
        self._size_bytes = size_bytes
        context = turn.context
        # Known now: the answer to an authentication is of another principal.
        self._who = context.client_id[:_CHARS], str(context.principal)[:_CHARS], context.connection.remote_address[0]

    def returned(self, answer: Answer[object]) -> Answer[object]:
        """Note that the handler has returned."""
        self._returned_s = self._clock_s()
        return self.seen(answer)

    def answered(self, value: object) -> None:
        self._note(_errors_in(value.response if isinstance(value, Large) else value, self._route), value, "")

    def ended(self, reason: str) -> None:
        self._note((), None, LEFT if reason == asyncio.CancelledError.__name__ else reason)

    def _note(self, errors: tuple[int, ...], value: object, outcome: str) -> None:
        returned_s = self._returned_s if self._returned_s > self._begun_s else self._clock_s()
        request = SeenRequest(
            self._at_ms,
            self._route.endpoint.key,
            self._route.version,
            *self._who,
            self._size_bytes,
            round(self._queue_s * 1e6),
            round((returned_s - self._begun_s) * 1e6),
            round((self._clock_s() - returned_s) * 1e6),
            isinstance(value, Forwarded),
            errors,
            outcome,
        )
        for each in self._watches:
            each.note(request)


def _is_of(context: Context, wanted: ClientWanted) -> bool:
    return (wanted.client_id is None or context.client_id == wanted.client_id) and (
        wanted.principal is None or str(context.principal) == wanted.principal
    )


def _errors_in(answer: object, route: Route) -> tuple[int, ...]:
    """Return the first different error codes in a response."""
    if isinstance(answer, Forwarded):
        answer = _decoded(answer, route)
    if not isinstance(answer, Response):
        return ()
    found: dict[int, None] = {}

    def note(code: int) -> None:
        if len(found) < limits.REQUEST_SEEN_ERRORS_MAX:
            found[code] = None

    finders_of_errors(type(answer)).codes(answer, note)
    return tuple(found)


def _decoded(answer: Forwarded, route: Route) -> Response | None:
    """Return the response that the active controller made, unless it is large."""
    if len(answer.data) > limits.REQUEST_SEEN_ANSWER_BYTES_MAX:
        return None
    body_at = _CORRELATION_ID_BYTES + route.header_version
    try:
        response, _ = decoder(api.response_class(route.endpoint.key), route.version)(memoryview(answer.data), body_at)
    except (WireError, IndexError, UnicodeDecodeError):
        return None
    return response
