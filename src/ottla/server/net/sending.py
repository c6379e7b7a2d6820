"""AnswerSending: sends a connection's answers to its socket, at the pace of the peer and of the disk.

A peer that does not read its answers, or a file range that has to be read from the disk first, stops the flow of this
connection alone: it is `blocked` until the socket is writable, or the range is in the page cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.log.files.disk import Cold, StorageError
from ottla.server.api.request_counts import Phase, RouteCounts
from ottla.server.net.outbound import Outbound
from ottla.server.ports.sockets import Socket
from ottla.server.storage.cold_reads import ColdReads


class AnswerSending:
    """`progress` is called when a blocked flow has moved on, with whether it is unblocked now; `lost` is called with
    the error if the flow has ended.
    """

    def __init__(
        self,
        sock: Socket,
        loop: asyncio.AbstractEventLoop,
        cold: ColdReads,
        outbound: Outbound,
        progress: Callable[[bool], None],
        lost: Callable[[Exception], None],
    ) -> None:
        self.outbound = outbound
        self.blocked = False
        self.unsent: list[RouteCounts] = []  # the counts of answers in the queue, until all of it is sent
        self._joined: list[tuple[RouteCounts, float]] = []  # of those that came while it was blocked, and when
        self._blocked_s = 0.0  # when the flow was blocked
        self._sock = sock
        self._loop = loop
        self._cold = cold
        self._progress = progress
        self._lost = lost
        self._fileno = sock.fileno()
        self._watches = False  # whether it waits for the socket, not for the disk
        self._closed = False

    def flush(self) -> None:
        """Send what is queued, unless the flow is blocked already; it may be blocked afterwards."""
        if not self.blocked and self.outbound.queue:
            self._send(False)

    def _send(self, warmed: bool) -> None:
        try:
            drained = self.outbound.flush(self._sock, warmed)
        except Cold as cold:
            self._block()
            self._watch(False)
            self._cold.warm(cold, self, self._warmed)
        except (OSError, StorageError) as error:
            self._lost(error)
        else:
            if not drained:
                self._block()
                self._watch(True)
            elif self.blocked:
                self.blocked = False
                self._watch(False)
                self._note_slow()
            if drained:
                self.unsent.clear()

    def join(self, counts: RouteCounts | None) -> None:
        """Note the counts of an answer that had to wait and has joined the queue."""
        if counts is None:
            return
        if self.blocked:
            self._joined.append((counts, self._loop.time()))
        else:
            self.unsent.append(counts)

    def _block(self) -> None:
        if not self.blocked:
            self.blocked = True
            self._blocked_s = self._loop.time()

    def _note_slow(self) -> None:
        """Note how long the answers took that were sent while the flow was blocked."""
        now_s = self._loop.time()
        for counts in self.unsent:
            counts.took_long(Phase.SENT, now_s - self._blocked_s)
        for counts, joined_s in self._joined:
            counts.took_long(Phase.SENT, now_s - joined_s)
        self._joined.clear()

    def _watch(self, yes: bool) -> None:
        if yes and not self._watches:
            self._loop.add_writer(self._fileno, self._writable)
        elif self._watches and not yes:
            self._loop.remove_writer(self._fileno)
        self._watches = yes

    def _writable(self) -> None:
        self._go_on(warmed=False)

    def _warmed(self) -> None:
        self._go_on(warmed=True)

    def _go_on(self, *, warmed: bool) -> None:
        if not self._closed:
            self._send(warmed)
        if not self._closed:
            self._progress(not self.blocked)

    def close(self) -> None:
        """Stop, because the socket is about to be closed."""
        self._closed = True
        self._watch(False)
        self.outbound.clear()
        self.unsent.clear()
        self._joined.clear()
        self._progress = self._lost = _ignore  # they refer to the connection, which refers to this


def _ignore(_: object) -> None:
    pass
