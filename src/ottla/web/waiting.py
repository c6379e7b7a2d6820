"""Idle connections: those without a request in progress, whether the client sends nothing or part of a head.

Rules:
- From its start, and after each answer, a connection has a limited time until the head of the next request is complete.
  A byte now and then does not prolong it. A client that is still receiving the last answer has more time, as long as it
  makes progress.
- When there are too many connections, the one that has been idle for longest is closed for a new one. So no client can
  keep others out with idle connections.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


def bounded(connections_max: int, wait_s: float) -> type[H11Protocol]:
    """Return a protocol class for the connections of one server."""
    waiting: dict[_Bounded, asyncio.TimerHandle] = {}  # idle connections, the longest idle first

    class _Bounded(H11Protocol):
        _unsent_bytes = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in H11Protocol
            if len(self.connections) >= connections_max - 1 and waiting:
                next(iter(waiting))._leave()
            super().connection_made(transport)
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
