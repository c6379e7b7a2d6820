"""The asyncio transport over a simulated socket, for code written as `asyncio.Protocol` (the client)."""

from __future__ import annotations

import asyncio
from asyncio import transports
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ottla.sim.world.loop import SimLoop
    from ottla.sim.world.socket import SimSocket

READ_BYTES_MAX = 64 * 1024
HIGH_WATER_BYTES = 64 * 1024


class SimTransport(transports.Transport):
    """Reads when the socket is readable, buffers writes that would block, and calls the protocol as asyncio's own
    transport does.
    """

    def __init__(self, loop: SimLoop, socket: SimSocket, protocol: asyncio.BaseProtocol) -> None:
        super().__init__({"peername": socket.getpeername(), "sockname": socket.getsockname(), "socket": socket})
        self._loop = loop
        self._socket = socket
        self._number = socket.number
        self._protocol: Any = protocol
        self._buffer = bytearray()
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._protocol_paused = False
        self._reading = False
        self._closing = False
        self._lost = False
        self.started: asyncio.Future[None] = loop.create_future()
        loop.call_soon(self._start)

    def _start(self) -> None:
        self._protocol.connection_made(self)
        self.resume_reading()
        if not self.started.done():
            self.started.set_result(None)

    # -- reading

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._number)

    def resume_reading(self) -> None:
        if not self._reading and not self._closing:
            self._reading = True
            self._loop.add_reader(self._number, self._readable)

    def _readable(self) -> None:
        buffer = bytearray(READ_BYTES_MAX)
        try:
            count = self._socket.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(error)
            return
        if count:
            self._protocol.data_received(bytes(memoryview(buffer)[:count]))
        elif not self._protocol.eof_received():
            self.close()
        else:
            self.pause_reading()

    # -- writing

    def write(self, data: Buffer) -> None:
        if self._closing or self._lost:
            return
        view = memoryview(data).cast("B")
        if not self._buffer:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                pass
            except OSError as error:
                self._lose(error)
                return
            if not view:
                return
            self._loop.add_writer(self._number, self._writable)
        self._buffer += view
        if len(self._buffer) > self._high and not self._protocol_paused:
            self._protocol_paused = True
            self._protocol.pause_writing()

    def _writable(self) -> None:
        try:
            del self._buffer[: self._socket.send(self._buffer)]
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(error)
            return
        if len(self._buffer) <= self._low and self._protocol_paused:
            self._protocol_paused = False
            self._protocol.resume_writing()
        if not self._buffer:
            self._loop.remove_writer(self._number)
            if self._closing:
                self._finish(None, self._socket.close)

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high if high is not None else HIGH_WATER_BYTES if low is None else 4 * low
        self._low = low if low is not None else self._high // 4

    def can_write_eof(self) -> bool:
        return False

    # -- the end

    def is_closing(self) -> bool:
        return self._closing

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def close(self) -> None:
        """Close after the buffered bytes are sent."""
        if not self._closing:
            self.pause_reading()
            self._closing = True
            if not self._buffer:
                self._finish(None, self._socket.close)

    def abort(self) -> None:
        self._closing = True
        self._finish(None, self._socket.abort)

    def _lose(self, error: OSError) -> None:
        self._closing = True
        self._finish(error, self._socket.close)

    def _finish(self, error: Exception | None, release: Callable[[], None]) -> None:
        if not self._lost:
            self._lost = True
            self._buffer.clear()
            self._loop.call_soon(self._protocol.connection_lost, error)
            release()
