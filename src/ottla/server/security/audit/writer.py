"""AuditWriter: writes the lines of the audit log to its sinks, to each by itself.

Each sink has its own queue of at most `limits.AUDIT_EVENTS_MAX` lines and a task that writes them, so a sink that hangs
does not delay the others. The first lines for a sink that cannot be written yet, such as a topic before any broker has
registered, wait in its queue. Lines that a sink fails to write later are lost, because nobody knows which of them were
written; their number is written in their place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from ottla.model import limits
from ottla.server.security.audit.log import AuditLog

log = logging.getLogger(__name__)


class NotWritable(Exception):
    """A sink cannot be written yet; none of the lines counts as written."""


class AuditSink(Protocol):
    """A place where the audit log is written; `name` is for messages."""

    @property
    def name(self) -> str: ...

    async def write(self, lines: Sequence[str]) -> None:
        """Write lines, or raise what prevented it: NotWritable if they are to be given again."""

    async def close(self) -> None: ...


class AuditWriter:
    def __init__(self, audit: AuditLog, sinks: Sequence[AuditSink]) -> None:
        self._audit = audit
        self._outlets = [_Outlet(sink, audit.missing) for sink in sinks]

    def begin(self) -> None:
        """Begin to write what waits; called from time to time."""
        lines = self._audit.take()
        for outlet in self._outlets:
            outlet.put(lines)

    async def flush(self) -> None:
        """Write what waits, and return when each sink has written it, or failed to."""
        self.begin()
        for outlet in self._outlets:
            await outlet.rest()

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
    """One sink, with what waits for it: lines, and numbers of lines that were lost between them."""

    def __init__(self, sink: AuditSink, missing: Callable[[int], str]) -> None:
        self._sink = sink
        self._missing = missing
        self._waiting: list[str | int] = []
        self._writing: asyncio.Task[None] | None = None
        self._told = ""  # the consequence of a failure that was logged

    def put(self, new: Sequence[str | int]) -> None:
        """Have lines written behind those that wait; those for which there is no room are lost."""
        room = max(limits.AUDIT_EVENTS_MAX - len(self._waiting), 0)
        self._waiting += new[:room]
        if len(new) > room:
            last = self._waiting.pop() if self._waiting and isinstance(self._waiting[-1], int) else 0
            self._waiting.append(_count([last, *new[room:]]))
        if self._has_lines and not self._is_writing:
            self._writing = asyncio.create_task(self._write())

    @property
    def _is_writing(self) -> bool:
        return self._writing is not None and not self._writing.done()

    @property
    def _has_lines(self) -> bool:
        return any(isinstance(each, str) for each in self._waiting)

    async def rest(self) -> None:
        """Return when nothing is being written."""
        if self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing])

    async def _write(self) -> None:
        """Write what waits, also what comes meanwhile, unless it has to wait for longer."""
        while self._has_lines:
            given, self._waiting = self._waiting, []
            try:
                await self._sink.write([self._missing(each) if isinstance(each, int) else each for each in given])
            except NotWritable as error:
                new, self._waiting = self._waiting, given
                self.put(new)
                self._tell(error)
                return
            except BaseException as error:
                self._waiting.insert(0, _count(given))
                if not isinstance(error, Exception):
                    raise
                self._tell(error)
            else:
                self._told = ""

    def _tell(self, error: Exception) -> None:
        """Log why the sink is not written: once until it is written again, and once more when lines are lost."""
        is_lost = any(isinstance(each, int) for each in self._waiting)
        what = "events are lost" if is_lost else "its first events wait"
        reason = str(error) or type(error).__name__
        if self._told != what:
            self._told = what
            log.error("the audit log cannot be written to %s, so %s: %s", self._sink.name, what, reason)

    async def close(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            await self.rest()
        if self._waiting:
            log.error(
                "%d events of the audit log were not written to %s before the node stopped",
                _count(self._waiting),
                self._sink.name,
            )
        await self._sink.close()


def _count(lines: Iterable[str | int]) -> int:
    """Return how many lines these are, with those that were lost."""
    return sum(each if isinstance(each, int) else 1 for each in lines)
