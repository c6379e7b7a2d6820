"""A TCP proxy that loses answers: the broker has done what it was asked, but the client does not hear of it."""

import asyncio
import random
from collections.abc import Hashable

from ottla.client.cluster import Cluster
from ottla.client.connection import Address, Connection
from ottla.client.options import ClientOptions


class LosingProxy:
    """Forwards everything to one broker, except that some answers are swallowed and the connection is cut instead.

    `chances` gives per API key how likely the answer to a request is lost; at most `losses` are.
    """

    def __init__(self, target: Address, chances: dict[int, float], losses: int, rng: random.Random) -> None:
        self.lost = 0
        self._target = target
        self._chances = chances
        self._losses = losses
        self._rng = rng
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> "LosingProxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = Address(*self._server.sockets[0].getsockname()[:2])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
        self._writers |= {writer, upstream_writer}
        doomed: set[bytes] = set()  # correlation ids of requests whose answers are lost
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(reader, upstream_writer, doomed))
                group.create_task(self._backward(upstream_reader, writer, doomed))
        except* (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()
            upstream_writer.close()  # not cut: what is on its way to the broker arrives
            self._writers -= {writer, upstream_writer}
            self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, upstream: asyncio.StreamWriter, doomed: set[bytes]) -> None:
        while True:
            frame = await _frame(reader)
            chance = self._chances.get(int.from_bytes(frame[4:6], "big"), 0.0)
            if self.lost < self._losses and self._rng.random() < chance:
                doomed.add(frame[8:12])
            upstream.write(frame)

    async def _backward(self, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: set[bytes]) -> None:
        while True:
            frame = await _frame(upstream)
            if frame[4:8] in doomed:
                self.lost += 1
                raise ConnectionResetError("the answer is lost")
            writer.write(frame)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    length = await reader.readexactly(4)
    return length + await reader.readexactly(int.from_bytes(length, "big"))


class ProxiedCluster(Cluster):
    """A cluster of one broker that is reached by way of the proxy, whatever address it advertises."""

    def __init__(self, options: ClientOptions, proxy: Address) -> None:
        super().__init__(options)
        self._proxy = proxy

    async def __aenter__(self) -> "ProxiedCluster":
        return self

    async def connect(self, address: Address, purpose: Hashable) -> Connection:
        return await super().connect(self._proxy, purpose)
