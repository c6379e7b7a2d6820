"""A way to a server that a test can close, slow down and cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

CHUNK_BYTES = 64 * 1024


class Door:
    """Passes on what comes while `is_open`, `delay_s` later; `carried_bytes` is what clients sent through it."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.delay_s = 0.0
        self.carried_bytes = 0
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """End all connections; new ones are served."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def come_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far: asyncio.StreamWriter | None = None
        self._writers.add(writer)
        try:
            await self.is_open.wait()
            far_reader, far = await asyncio.open_connection("127.0.0.1", self._target_port)
            self._writers.add(far)
            await asyncio.gather(self._pass(reader, far, is_sent=True), self._pass(far_reader, writer, is_sent=False))
        except OSError:
            return
        finally:
            for each in (writer, far):
                if each is not None:
                    self._writers.discard(each)
                    each.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_sent: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await asyncio.sleep(self.delay_s)
                await self.is_open.wait()
                self.carried_bytes += len(data) * is_sent
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def door_to(port: int) -> AsyncIterator[Door]:
    door = Door(port)
    tasks: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(door.come_in(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    door.port = server.sockets[0].getsockname()[1]
    try:
        yield door
    finally:
        server.close()
        door.cut()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
