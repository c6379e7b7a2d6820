"""AuditWriter: writes what the audit log has to its sinks, each as it can.

A sink that cannot be written yet, such as a topic before any broker has registered, does not lose the first lines: they
wait, at most `limits.AUDIT_EVENTS_MAX`. What a sink fails to write later is lost, because nobody knows which of it is
written; the number of lost lines is written in their place. No sink holds up another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from ottla.model import limits
from ottla.server.security.audit.log import AuditLog

log = logging.getLogger(__name__)


class NotWritable(Exception):
    """A sink cannot be written yet; none of the lines counts as written."""


class AuditSink(Protocol):
    """Where the audit log is written; `name` says so."""

    @property
    def name(self) -> str: ...

    async def write(self, lines: Sequence[str]) -> None:
        """Write lines, or raise what prevented it: NotWritable if they are to be given again."""

    async def close(self) -> None: ...


class AuditWriter:
    def __init__(self, audit: AuditLog, sinks: Sequence[AuditSink]) -> None:
        self._audit = audit
        self._outlets = [_Outlet(sink, audit.missing) for sink in sinks]
        self._turn = asyncio.Lock()  # one writes at a time, so that lines stay in order

    async def flush(self) -> None:
        """Write what waits; called from time to time, and at the end."""
        async with self._turn:
            lines = self._audit.take()
            await asyncio.gather(*(outlet.write(lines) for outlet in self._outlets))

    async def hurry(self) -> None:
        """Write what waits. A sink that cannot be reached any more does not hold up a stop for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.AUDIT_CLOSE_S):
                await self.flush()

    async def close(self) -> None:
        """Write what waits, and end."""
        await self.hurry()
        for outlet in self._outlets:
            await outlet.close()


class _Outlet:
    """One sink, with the lines that wait for it, and the number of those that it has missed since it was written."""

    def __init__(self, sink: AuditSink, missing: Callable[[int], str]) -> None:
        self._sink = sink
        self._missing = missing
        self._waiting: list[str] = []
        self._lost = 0
        self._told = ""  # the consequence of a failure that was logged

    async def write(self, new: Sequence[str]) -> None:
        lines = [*self._waiting, *([self._missing(self._lost)] if self._lost else ()), *new]
        if not new and not self._waiting:
            return
        try:
            await self._sink.write(lines)
        except NotWritable as error:
            self._keep(new)
            self._tell(error)
        except BaseException as error:
            self._lost += len(self._waiting) + len(new)
            self._waiting = []
            if not isinstance(error, Exception):
                raise
            self._tell(error)
        else:
            self._waiting, self._lost, self._told = [], 0, ""

    def _keep(self, lines: Sequence[str]) -> None:
        room = 0 if self._lost else limits.AUDIT_EVENTS_MAX - len(self._waiting)
        self._waiting += lines[:room]
        self._lost += len(lines[room:])

    def _tell(self, error: Exception) -> None:
        """Log why the sink is not written: once until it is written again, and once more when lines are lost."""
        what = "events are lost" if self._lost else "its first events wait"
        reason = str(error) or type(error).__name__
        if self._told != what:
            self._told = what
            log.error("the audit log cannot be written to %s, so %s: %s", self._sink.name, what, reason)

    async def close(self) -> None:
        if lost := self._lost + len(self._waiting):
            log.error(
                "%d events of the audit log were not written to %s before the node stopped", lost, self._sink.name
            )
        await self._sink.close()
