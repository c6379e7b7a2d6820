"""RestOfFrame: receives the rest of one large answer straight into its frame, without a copy."""

import asyncio
from typing import Protocol


class FrameOwner(Protocol):
    """The methods of a connection that `RestOfFrame` calls."""

    def take_frame(self, frame: bytearray) -> None:
        """Process the complete frame, and receive the next answers as usual."""

    def take_up(self, filled: int, data: bytes) -> None:
        """Receive the rest of the frame as usual: so much of it is filled, and these are the next bytes."""

    def connection_lost(self, exc: Exception | None) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class RestOfFrame(asyncio.BufferedProtocol):
    """Takes the place of a connection while the rest of one large answer is received."""

    def __init__(self, connection: FrameOwner, frame: bytearray, filled: int) -> None:
        self._connection = connection
        self._frame = frame
        self._view = memoryview(frame)
        self._filled = filled

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._filled == len(self._view):
            self._connection.take_frame(self._frame)

    def data_received(self, data: bytes) -> None:
        """Called by transports without buffered protocols (the simulator's): continue as usual."""
        self._connection.take_up(self._filled, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
