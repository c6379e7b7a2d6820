"""Simulated TCP: bytes arrive whole and in order or not at all, and connections break as TCP's do."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.sim.world.links import LinkQuality
from ottla.sim.world.loop import SimHost, SimLoop
from ottla.sim.world.net import SimNet
from ottla.sim.world.socket import SimListeningSocket, SimSocket


class Echo:
    """A server as ours is written: raw non-blocking sockets and add_reader/add_writer."""

    def __init__(self, loop: SimLoop, listener: SimListeningSocket, *, reads: bool = True) -> None:
        self.loop, self.listener, self.reads = loop, listener, reads
        self.sockets: list[SimSocket] = []
        self.outcomes: list[str] = []
        loop.add_reader(listener.fileno(), self.accept)

    def accept(self) -> None:
        socket, _ = self.listener.accept()
        with pytest.raises(BlockingIOError):
            self.listener.accept()
        self.sockets.append(socket)
        if self.reads:
            pending = bytearray()
            self.loop.add_reader(socket.fileno(), self.readable, socket, pending)

    def readable(self, socket: SimSocket, pending: bytearray) -> None:
        buffer = bytearray(5000)
        try:
            count = socket.recv_into(buffer)
        except OSError as error:
            self.outcomes.append(type(error).__name__)
            socket.close()
            return
        if count == 0:
            self.outcomes.append("end")
            socket.close()
            return
        pending += buffer[:count]
        self.writable(socket, pending)

    def writable(self, socket: SimSocket, pending: bytearray) -> None:
        try:
            while pending:
                del pending[: socket.sendmsg([pending[:100], pending[100:]])]
        except BlockingIOError:
            self.loop.add_writer(socket.fileno(), self.writable, socket, pending)
        except OSError as error:
            self.outcomes.append(type(error).__name__)
            socket.close()
        else:
            self.loop.remove_writer(socket.fileno())


class World:
    def __init__(self, seed: int = 1, **quality: Any) -> None:
        self.loop = SimLoop(random.Random(seed))
        self.net = SimNet(self.loop, random.Random(seed), LinkQuality(**quality))
        self.server, self.client = self.net.add_host("server"), self.net.add_host("client")
        self.echo = self.serve(self.server)
        self.writers: list[asyncio.StreamWriter] = []

    def serve(self, host: SimHost, **options: Any) -> Echo:
        return self.loop.call_as(host, lambda: Echo(self.loop, self.net.view(host).listen("0.0.0.0", 9092), **options))

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        async def main() -> Any:
            return await self.loop.task_of(self.client, coroutine)

        try:
            result = self.loop.run_until_complete(main())
            assert not self.loop.errors, self.loop.errors
            return result
        finally:
            for writer in self.writers:
                writer.transport.abort()
            self.loop.bury()

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self.server.address, 9092)
        self.writers.append(writer)
        return reader, writer


@pytest.mark.parametrize("seed", range(5))
def test_bytes_come_back_in_order(seed: int) -> None:
    world = World(seed, window_bytes=3000, short_rate=0.5)
    payload = random.Random(seed).randbytes(50_000)

    async def client() -> bytes:
        reader, writer = await world.dial()
        writer.write(payload)
        echoed = await reader.readexactly(len(payload))
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(1)
        return echoed

    assert world.run(client()) == payload
    assert world.echo.outcomes == ["end"] and world.loop.time() > 0.01


def test_a_full_window_blocks_the_writer() -> None:
    world = World(window_bytes=10_000)
    world.echo.reads = False

    async def client() -> int:
        _, writer = await world.dial()
        writer.write(bytes(1_000_000))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.drain(), 60)
        return writer.transport.get_write_buffer_size()

    assert world.run(client()) >= 990_000


def test_refused_unreachable_and_in_use() -> None:
    world = World()

    async def client() -> None:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(world.server.address, 1)
        with pytest.raises(OSError, match="no host"):
            await asyncio.open_connection("10.9.9.9", 1)
        world.net.cut(world.server, world.client, both_ways=False)
        with pytest.raises(TimeoutError):
            await world.dial()

    with pytest.raises(OSError, match="in use"):
        world.net.listen(world.server, 9092)
    world.run(client())


@pytest.mark.parametrize("both_ways", [True, False])
def test_a_partition_holds_bytes_back_and_healing_delivers_them(both_ways: bool) -> None:
    world = World()

    async def client() -> tuple[bytes, float]:
        reader, writer = await world.dial()
        world.net.cut(world.client, world.server, both_ways=both_ways)
        writer.write(b"hello")
        world.loop.call_later(10, world.net.heal)
        echoed = await reader.readexactly(5)
        writer.close()
        await asyncio.sleep(1)
        return echoed, world.loop.time()

    echoed, at = world.run(client())
    assert echoed == b"hello" and at > 10


def test_a_long_partition_leaves_the_other_side_half_open() -> None:
    world = World(give_up_seconds=20)

    async def client() -> None:
        reader, writer = await world.dial()
        writer.write(b"x")
        await reader.readexactly(1)
        world.net.cut(world.client, world.server)
        writer.write(b"hello")
        with pytest.raises(TimeoutError):
            await reader.read()
        assert world.echo.outcomes == []

    world.run(client())


@pytest.mark.parametrize("crash", ["process", "power"])
def test_what_the_peer_of_a_crashed_host_sees(crash: str) -> None:
    world = World()

    async def client() -> str:
        reader, writer = await world.dial()
        writer.write(b"x")
        await reader.readexactly(1)
        world.loop.kill(world.server)
        if crash == "process":
            world.net.close_all(world.server)
        else:
            world.net.vanish(world.server)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(), 5)
        reborn = world.net.replace_host(world.server)
        world.serve(reborn)
        if crash == "power":
            writer.write(b"to a machine that has forgotten me")
        try:
            return "end" if await asyncio.wait_for(reader.read(), 10) == b"" else "data"
        except ConnectionResetError:
            return "reset"
        finally:
            writer.close()
            again, other = await world.dial()
            other.write(b"works")
            assert await again.readexactly(5) == b"works"
            other.close()

    assert world.run(client()) == ("end" if crash == "process" else "reset")


@pytest.mark.parametrize("break_it", [SimSocket.break_connection, SimSocket.abort])
def test_resets(break_it: Callable[[SimSocket], None]) -> None:
    world = World()

    async def client() -> None:
        reader, writer = await world.dial()
        writer.write(b"x")
        await reader.readexactly(1)
        break_it(world.echo.sockets[0])
        with pytest.raises(ConnectionResetError):
            await reader.read()

    world.run(client())


def test_writing_to_a_closed_connection_resets_it() -> None:
    world = World()

    async def client() -> None:
        reader, writer = await world.dial()
        writer.write(b"x")
        await reader.readexactly(1)
        world.echo.sockets[0].close()
        assert await reader.read() == b""
        writer.write(b"the first write is answered by a reset")
        await asyncio.sleep(1)
        assert not writer.transport.is_closing()
        writer.write(b"which the second one meets")
        assert writer.transport.is_closing()

    world.run(client())


def test_same_seed_same_trace() -> None:
    def trace(seed: int) -> str:
        world = World(seed)

        async def client() -> None:
            reader, writer = await world.dial()
            for number in range(50):
                writer.write(b"%d" % number * number)
                await reader.readexactly(len(b"%d" % number * number))
            writer.close()

        world.run(client())
        return world.loop.trace

    assert trace(1) == trace(1) != trace(2)


def test_a_link_that_is_cut_twice_is_mended_twice() -> None:
    world = World()

    async def client() -> float:
        reader, writer = await world.dial()
        for _ in range(2):
            world.net.cut(world.client, world.server)
        writer.write(b"x")
        for at in (5, 10):
            world.loop.call_later(at, world.net.join, world.client, world.server)
        await reader.readexactly(1)
        return world.loop.time()

    assert 10 < world.run(client()) < 15


def test_a_far_host_is_slow_and_nobody_else() -> None:
    world = World(spike_rate=0.0)

    async def client() -> list[float]:
        reader, writer = await world.dial()
        times = []
        for delay in (0.0, 50.0, 0.0):
            world.net.delay(world.server, delay)
            start = world.loop.time()
            writer.write(b"x")
            await reader.readexactly(1)
            times.append(world.loop.time() - start)
        return times

    near, far, near_again = world.run(client())
    assert far > 1 > max(near, near_again)


def test_messages_that_cost_their_connections() -> None:
    world = World(reset_rate=1.0)

    async def client() -> None:
        reader, writer = await world.dial()
        writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(2)

    world.run(client())
