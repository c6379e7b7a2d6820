"""Idle connections: those without a request in progress, whether the client sends nothing or part of a head.

Rules:
- From its start, and after each answer, a connection has a limited time until the head of the next request is complete.
  A byte now and then does not prolong it. A client that is still receiving the last answer has more time, as long as it
  makes progress.
- When there are too many connections, the one that has been idle for longest is closed for a new one. So no client can
  keep others out with idle connections.
- A client that speaks something else than HTTP (mostly TLS) is logged with its address: at most one line in a while for
  all such clients.
- With TLS, the certificate of the client (DER, None without one) is in the scope's `state` as `certificate`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

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


def bounded(connections_max: int, wait_s: float) -> type[H11Protocol]:
    """Return a protocol class for the connections of one server."""
    waiting: dict[_Bounded, asyncio.TimerHandle] = {}  # idle connections, the longest idle first

    class _Bounded(_Telling):
        _unsent_bytes = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in H11Protocol
            if len(self.connections) >= connections_max - 1 and waiting:
                next(iter(waiting))._leave()
            super().connection_made(transport)
            self.app_state = {**self.app_state, **_certificate_state(transport)}
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._is_busy():
                self._stop_waiting()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self._is_busy():  # the next request may have come already
                self._wait()

        def _is_busy(self) -> bool:
            cycle: Any = self.cycle  # None before the first request
            return cycle is not None and not cycle.response_complete

        def _wait(self) -> None:
            self._stop_waiting()
            if not self.transport.is_closing():
                self._unsent_bytes = self.transport.get_write_buffer_size()
                waiting[self] = self.loop.call_later(wait_s, self._due)

        def _stop_waiting(self) -> None:
            timer = waiting.pop(self, None)
            if timer is not None:
                timer.cancel()

        def _due(self) -> None:
            if self.transport.get_write_buffer_size() < self._unsent_bytes:
                self._wait()
            else:
                self._leave()

        def _leave(self) -> None:
            self._stop_waiting()
            self.connections.discard(self)  # `connection_lost` comes later, but its place is taken at once
            if self.transport.get_write_buffer_size():
                self.transport.abort()
            else:
                self.transport.close()

    return _Bounded


def _says_more(record: logging.LogRecord) -> bool:
    """Leave out a line of uvicorn in whose place a line here says more."""
    return record.msg != _NO_HTTP


def _certificate_state(transport: asyncio.Transport) -> dict[str, bytes | None]:
    """Return what applications find in the state of each request about the client's certificate."""
    tls = transport.get_extra_info("ssl_object")
    return {} if tls is None else {CERTIFICATE: tls.getpeercert(binary_form=True)}


logging.getLogger("uvicorn.error").addFilter(_says_more)
