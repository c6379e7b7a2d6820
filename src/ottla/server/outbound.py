"""Outbound: what a connection still has to send — byte strings and file slices, in order.

Bytes that lie next to each other leave in one `sendmsg`; a file slice leaves by `sendfile`, so a slow reader holds
no memory. A small slice is read instead: one packet with its headers beats three system calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any

from ottla.log.disk import FileSlice
from ottla.model import limits


class Outbound:
    __slots__ = ("queue",)

    def __init__(self) -> None:
        self.queue: deque[Any] = deque()

    def extend(self, parts: Iterable[Any]) -> None:
        for part in parts:
            if part.__class__ is FileSlice and len(part) <= limits.INLINE_SLICE_BYTES_MAX:
                self.queue.append(part.read())
            else:
                self.queue.append(part)

    def flush(self, sock: Any) -> bool:
        """Sends as much as the socket takes; True when nothing is left. Raises OSError when the peer is gone."""
        queue = self.queue
        try:
            while queue:
                head = queue[0]
                if head.__class__ is FileSlice:
                    self._send_file(sock, head)
                elif len(queue) == 1:
                    sent = sock.send(head)
                    if sent < len(head):
                        queue[0] = memoryview(head)[sent:]
                    else:
                        queue.popleft()
                else:
                    self._send_bytes(sock)
        except (BlockingIOError, InterruptedError):
            return False
        return True

    def _send_file(self, sock: Any, part: FileSlice) -> None:
        sent = part.file.send(sock, part.position, part.size_bytes)
        if sent == 0:
            raise ConnectionError(f"{part.file.path} ended before the range that was promised")
        if sent < part.size_bytes:
            self.queue[0] = FileSlice(part.file, part.position + sent, part.size_bytes - sent)
        else:
            self.queue.popleft()

    def _send_bytes(self, sock: Any) -> None:
        queue = self.queue
        run: list[Any] = []
        for part in islice(queue, limits.SEND_VECTOR_MAX):
            if part.__class__ is FileSlice:
                break
            run.append(part)
        sent = sock.sendmsg(run)
        while sent:
            head = queue[0]
            if sent < len(head):
                queue[0] = memoryview(head)[sent:]
                return
            sent -= len(head)
            queue.popleft()
