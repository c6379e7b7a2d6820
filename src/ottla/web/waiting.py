"""The connections of a server: how many there are, in all and from one address, and how long they may be idle. A
connection is idle without a request in progress, whether the client sends nothing or part of a head.

Rules:
- From its start, and after each answer, a connection has a limited time until the head of the next request is complete.
  A byte now and then does not prolong it. A client that is still receiving the last answer has more time, as long as it
  makes progress.
- When there are too many connections, the one that has been idle for longest is closed for a new one. So no client can
  keep others out with idle connections.
- When one address has too many connections, its own that has been idle for longest is closed for its new one. If all of
  them have a request, the new one is answered with 503. So an address cannot take the places of others.
- A client that speaks something else than HTTP (mostly TLS) is logged with its address: at most one line in a while for
  all such clients.
- With TLS, the certificate of the client (DER, None without one) is in the scope's `state` as `certificate`. The
  connection itself is there, too (`web_connection.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from ottla.model import limits
from ottla.web.oldest import OldestFirst
from ottla.web.web_connection import WebConnection

log = logging.getLogger(__name__)

CERTIFICATE = "certificate"
_NO_HTTP: Final = "Invalid HTTP request received."  # as uvicorn logs it, without saying of whom
_TLS_HELLO: Final = b"\x16\x03"
_TELL_AGAIN_S: Final = 60.0


class _Telling(H11Protocol):
    """A connection that logs the address of a client that does not speak HTTP. Each server has a subclass of its own,
    which holds the time of the last such line.
    """

    _told_at = -_TELL_AGAIN_S
    _begins_with_tls = False

    def data_received(self, data: bytes) -> None:
        self._begins_with_tls = data.startswith(_TLS_HELLO)
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        now = self.loop.time()
        if now - self._told_at >= _TELL_AGAIN_S:
            type(self)._told_at = now
            peer = ":".join(map(str, (self.client or ("an unknown client",))))
            spoken = "TLS, but this port serves plain HTTP" if self._begins_with_tls else "no HTTP"
            log.warning("%s speaks %s", peer, spoken)
        super().send_400_response(msg)


class _Places:
    """The connections of one server: how many each address has, and which are idle, the longest idle first."""

    def __init__(self, connections_max: int) -> None:
        self._most = connections_max
        self._most_of_host = max(1, connections_max // limits.HTTP_ADDRESS_PART)
        self._counts: Counter[str] = Counter()
        self._idle: OldestFirst[_Bounded] = OldestFirst()

    def take(self, new: _Bounded) -> bool:
        """Count a new connection; others give way. False: its address has too many, all of them with a request."""
        has_room = self._counts[new.host] < self._most_of_host
        if not has_room and (own := self._idle.oldest_of(new.host)) is not None:
            own.leave()
            has_room = True
        if len(new.connections) >= self._most - 1 and (idle := self._idle.oldest()) is not None:
            idle.leave()
        self._counts[new.host] += 1
        return has_room

    def give_back(self, host: str) -> None:
        self._counts[host] -= 1
        if not self._counts[host]:
            del self._counts[host]

    def note_idle(self, connection: _Bounded) -> None:
        self._idle.add(connection, connection.host)

    def note_busy(self, connection: _Bounded) -> None:
        self._idle.discard(connection)


class _Bounded(_Telling):
    """A connection that ends when it is idle for too long, or when its place is needed. Each server has a subclass of
    its own, which holds its places.
    """

    places: _Places
    idle_s: float
    host = ""
    _has_place = False
    _timer: asyncio.TimerHandle | None = None
    _unsent_bytes = 0
    _client: WebConnection | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in H11Protocol
        self.host = str((transport.get_extra_info("peername") or ("",))[0])
        if not self.places.take(self):
            self.limit_concurrency = 0  # uvicorn answers with 503, and closes the connection
        self._has_place = True
        super().connection_made(transport)
        self._client = WebConnection(transport)
        self.app_state = {**self.app_state, **_certificate_state(transport), **self._client.as_state()}
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._give_place_back()
        super().connection_lost(exc)
        if self._client is not None:
            self._client.note_lost()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_busy():
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_busy():  # the next request may have come already
            self._wait()

    def leave(self) -> None:
        """Close the connection, which is idle; its place is free at once."""
        self._give_place_back()
        self.connections.discard(self)  # `connection_lost` comes later
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _is_busy(self) -> bool:
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _wait(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self._unsent_bytes = self.transport.get_write_buffer_size()
            self.places.note_idle(self)
            self._timer = self.loop.call_later(self.idle_s, self._due)

    def _stop_waiting(self) -> None:
        self.places.note_busy(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent_bytes:
            self._wait()
        else:
            self.leave()

    def _give_place_back(self) -> None:
        self._stop_waiting()
        if self._has_place:
            self._has_place = False
            self.places.give_back(self.host)


def bounded(connections_max: int, wait_s: float) -> type[H11Protocol]:
    """Return a protocol class for the connections of one server."""

    class _OfServer(_Bounded):
        places = _Places(connections_max)
        idle_s = wait_s

    return _OfServer


def _says_more(record: logging.LogRecord) -> bool:
    """Leave out a line of uvicorn in whose place a line here says more."""
    return record.msg != _NO_HTTP


def _certificate_state(transport: asyncio.Transport) -> dict[str, bytes | None]:
    """Return what applications find in the state of each request about the client's certificate."""
    tls = transport.get_extra_info("ssl_object")
    return {} if tls is None else {CERTIFICATE: tls.getpeercert(binary_form=True)}


logging.getLogger("uvicorn.error").addFilter(_says_more)
