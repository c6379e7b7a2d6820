"""Outbound: the queue of bytes and file slices that a connection still has to send, in order.

Adjacent bytes are sent with one `sendmsg`; a file slice is sent with `sendfile`, so a slow reader takes no memory. A
small slice is read instead, when its turn comes: one packet with its headers is cheaper than three system calls. A
slice that is not in the page cache stops the flow (`Cold`): the caller has it read into the page cache before going on.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from ottla.log.files.disk import Cold, FileSlice
from ottla.model import limits
from ottla.records.batch import Buffer
from ottla.server.api.dispatch import Part
from ottla.server.ports.sockets import Socket


class Outbound:
    __slots__ = ("held_bytes", "queue")

    def __init__(self) -> None:
        self.queue: deque[Part] = deque()
        self.held_bytes = 0  # bytes in memory, including answers that wait for their turn

    def add(self, parts: list[Part]) -> None:
        """Append an answer; its first part is bytes."""
        if len(parts) == 1:
            (part,) = parts
            self.held_bytes += len(part)
            self.queue.append(part)
        else:
            self.queue.extend(self.hold(parts))

    def hold(self, parts: list[Part]) -> list[Part]:
        """Count the bytes of an answer that cannot join the queue yet; return the answer."""
        for part in parts:
            if not isinstance(part, FileSlice):
                self.held_bytes += len(part)
        return parts

    def clear(self) -> None:
        """Drop what will not be sent any more."""
        self.queue.clear()

    def flush(self, sock: Socket, warmed: bool = False) -> bool:
        """Send as much as the socket takes and one turn allows; return True when nothing is left.

        Raise OSError if the peer is gone, StorageError if a file is, and Cold if the next slice has to be read from the
        disk first; not if it just was (`warmed`), even if it is cold again.
        """
        queue = self.queue
        left_bytes = limits.SEND_PER_TURN_BYTES
        try:
            while queue:
                head = queue[0]
                if isinstance(head, FileSlice):
                    if head.size_bytes > limits.INLINE_SLICE_BYTES_MAX:
                        left_bytes -= self._send_file(sock, head, warmed)
                        warmed = False
                        if left_bytes <= 0:
                            return not queue
                        continue
                elif len(queue) == 1:  # a shortcut for the usual answer
                    sent = sock.send(head)
                    self.held_bytes -= sent
                    if sent == len(head):
                        queue.popleft()
                    else:
                        queue[0] = memoryview(head)[sent:]
                    continue
                run = self._run(warmed)
                warmed = False
                self._sent(sock.sendmsg(run))
        except (BlockingIOError, InterruptedError):
            return False
        return True

    def _send_file(self, sock: Socket, part: FileSlice, warmed: bool) -> int:
        step_bytes = min(part.size_bytes, limits.SEND_STEP_BYTES)
        if not (warmed or part.file.is_warm(part.position, step_bytes)):
            raise Cold(part.file, part.position, step_bytes)
        sent = part.file.send(sock, part.position, step_bytes)
        if sent == 0:
            raise too_short(part)
        self._advance(part, sent)
        return sent

    def _advance(self, part: FileSlice, sent: int) -> None:
        """Note that the first `sent` bytes of the file range at the head were sent."""
        if sent < part.size_bytes:
            self.queue[0] = FileSlice(part.file, part.position + sent, part.size_bytes - sent)
        else:
            self.queue.popleft()

    def _run(self, warmed: bool) -> list[Buffer]:
        """Return the bytes at the head of the queue, with small file slices read, up to one that is cold."""
        queue = self.queue
        run: list[Buffer] = []
        size_bytes = 0
        for at, part in enumerate(list(islice(queue, limits.SEND_VECTOR_MAX))):
            if isinstance(part, FileSlice):
                if part.size_bytes > limits.INLINE_SLICE_BYTES_MAX:
                    break
                if not (part.file.is_warm(part.position, part.size_bytes) or (warmed and not at)):
                    if not run:
                        raise Cold(part.file, part.position, part.size_bytes)
                    break
                data = part.read()
                if len(data) < part.size_bytes:
                    raise too_short(part)
                queue[at] = part = data
                self.held_bytes += len(data)
            run.append(part)
            size_bytes += len(part)
            if size_bytes >= limits.SEND_RUN_BYTES:
                break
        return run

    def _sent(self, sent: int) -> None:
        queue = self.queue
        self.held_bytes -= sent
        while True:
            head = queue[0]
            size_bytes = len(head)
            if sent < size_bytes:
                assert not isinstance(head, FileSlice), "slices are sent with sendfile"
                queue[0] = memoryview(head)[sent:]
                return
            queue.popleft()
            sent -= size_bytes
            if not sent:
                return


def too_short(part: FileSlice) -> ConnectionError:
    return ConnectionError(f"{part.file.path} ended before the range that was promised")
