"""The fault script: the requests that a test wants to fail, and how.

    broker.fail(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=3)
    broker.fail(api="Fetch", close=True)
    broker.fail(api="OffsetCommit", delay="2s", times=None)

A failed request is not carried out: its response has the structure of a real one, with the error code in its innermost
structures that can have one. With `after=True` the request is carried out first, which the client cannot see.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ottla.model.durations import parse_duration_ms
from ottla.model.errors import ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import Served
from ottla.server.loop.later import Disconnect, Later
from ottla.testing.refusal import refusal, with_error
from ottla.wire.api import API_NAMES


@dataclass(eq=False, slots=True)
class Fault:
    """One entry of the script; `hits` counts the requests that it failed."""

    api: str
    error: ErrorCode | None
    close: bool
    delay_ms: int
    after: bool
    client_id: str | None
    left: int | None  # None: until it is cleared
    hits: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __str__(self) -> str:
        how = "connections are closed" if self.close else self.error.name if self.error is not None else "late"
        late = f" after {self.delay_ms} ms" if self.delay_ms else ""
        return f"{self.api}: {how}{late}{', carried out all the same' if self.after else ''}"

    def takes(self, api: str, client_id: str) -> bool:
        """Whether this fault applies to the request; counts the request if so."""
        with self._lock:
            if api != self.api or self.left == 0 or self.client_id not in (None, client_id):
                return False
            if self.left is not None:
                self.left -= 1
            self.hits += 1
            return True

    def clear(self) -> None:
        """Let no further request fail by this fault."""
        with self._lock:
            self.left = 0


class FaultScript:
    """All faults of a broker; the first that applies to a request decides."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._under_way: set[asyncio.Task[None]] = set()

    def add(
        self,
        api: str,
        error: str | ErrorCode | None,
        times: int | None,
        *,
        close: bool,
        delay: str | None,
        after: bool,
        client_id: str | None,
    ) -> Fault:
        known = {name.lower(): name for name in API_NAMES.values()}
        if api.lower() not in known:
            raise ValueError(f"there is no API {api!r}")
        if isinstance(error, str):
            if error not in ErrorCode.__members__:
                raise ValueError(f"there is no error {error!r}")
            error = ErrorCode[error]
        if times is not None and times < 1:
            raise ValueError(f"times is at least 1, or None for all, not {times}")
        if error is None and not close and delay is None:
            raise ValueError("say how it fails: error=…, close=True or delay=…")
        delay_ms = parse_duration_ms(delay) if delay is not None else 0
        fault = Fault(known[api.lower()], error, close, delay_ms, after, client_id, times)
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        for fault in self._faults:
            fault.clear()
        self._faults.clear()

    def intercept(self, endpoint: Served, request: Any, context: Context) -> Any:
        """Handle a request, or let it fail; called between the connection and the handler."""
        for fault in self._matching(endpoint, context):
            if fault.delay_ms:
                return self._later(fault, endpoint, request, context)
            return self._fail(fault, endpoint, request, context)
        return endpoint.handler(request, context)

    def _matching(self, endpoint: Served, context: Context) -> Iterator[Fault]:
        return (fault for fault in tuple(self._faults) if fault.takes(endpoint.name, context.client_id))

    def _fail(self, fault: Fault, endpoint: Served, request: Any, context: Context) -> Any:
        done = endpoint.handler(request, context) if fault.after or (fault.error is None and not fault.close) else None
        if fault.close:
            self._carry_out(done)
            raise Disconnect("the test wants it so")
        if fault.error is None:
            return done
        if not fault.after:
            return refusal(endpoint, request, context, fault.error)
        return with_error(done, fault.error)

    def _later(self, fault: Fault, endpoint: Served, request: Any, context: Context) -> Any:
        """Delay the request, and with it all that follow on its connection."""
        version = context.request_version

        async def wait() -> Any:
            await asyncio.sleep(fault.delay_ms / 1000)
            context.request_version = version
            answer = self._fail(fault, endpoint, request, context)
            return await answer if hasattr(answer, "__await__") else answer

        return wait()

    def _carry_out(self, answer: Any) -> None:
        """Complete an answer that is not sent. (A `Later` completes by itself.)"""
        if isinstance(answer, Awaitable) and not isinstance(answer, Later):
            task = asyncio.ensure_future(_awaited(answer))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)


async def _awaited(answer: Awaitable[Any]) -> None:
    await answer
