"""Simulated TCP: listening sockets and connections with latency, limited windows, partial transfers and faults.

A connection behaves as with a real kernel:
- bytes arrive in order, after the latency of the link, at most `window_bytes` unread or on the way per direction: then
  `send` would block;
- `recv_into`, `send` and `sendmsg` move fewer bytes than asked whenever `short_rate` says so;
- `close` lets what was sent arrive, then end of file; with unread bytes it resets; data for a closed socket is answered
  by a reset;
- a cut link (`cut`, one-way or both ways) delivers nothing and loses nothing: TCP retransmits. After `give_up_seconds`
  the sending side gets ETIMEDOUT and the other side is left half-open;
- a host may be far away for a while (`delay`): everything that it sends takes longer, and other hosts are not affected;
- with a `reset_rate` any message may cause a reset: bytes in transit are lost in both directions;
- a host that loses power sends nothing any more (`vanish`); its peers notice by a timeout, or by a reset once it is
  back.

All delays come from the seed. Two connections are never ordered with respect to each other.
"""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable

from ottla.sim.world.links import Attached, LinkQuality, Links
from ottla.sim.world.loop import HOST, SimHost, SimLoop
from ottla.sim.world.socket import SimListeningSocket, SimSocket
from ottla.sim.world.transport import SimTransport


class SimNet(Links):
    """The links, and what hosts do with them: listen and connect; and network faults."""

    def __init__(self, loop: SimLoop, rng: random.Random, quality: LinkQuality | None = None) -> None:
        super().__init__(loop, rng, quality)
        self.listeners: dict[tuple[str, int], SimListeningSocket] = {}
        self._next_port = 40000
        loop.dialler = self

    # -- hosts and sockets

    def add_host(self, name: str) -> SimHost:
        host = SimHost(name, f"10.0.0.{len(self.hosts) + 1}")
        self.hosts[host.address] = host
        return host

    def replace_host(self, host: SimHost) -> SimHost:
        """Return the next incarnation of a host: same name and address, but no code and no socket of the old one."""
        reborn = SimHost(host.name, host.address)
        reborn.worker_delay_seconds = host.worker_delay_seconds
        self.hosts[host.address] = reborn
        for socket in self._of(host):
            self.unregister(socket)
        return reborn

    def view(self, host: SimHost) -> HostNet:
        return HostNet(self, host)

    def listen(self, host: SimHost, port: int) -> SimListeningSocket:
        if port == 0:
            port = self.ephemeral_port()
        if (host.address, port) in self.listeners:
            raise OSError(errno.EADDRINUSE, f"{host.address}:{port} is in use")
        listener = SimListeningSocket(self, host, port)
        self.listeners[host.address, port] = listener
        return listener

    def unregister(self, socket: Attached) -> None:
        super().unregister(socket)
        if isinstance(socket, SimListeningSocket) and self.listeners.get(socket.address) is socket:
            del self.listeners[socket.address]

    def ephemeral_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def _of(self, host: SimHost) -> list[Attached]:
        return [socket for socket in self.sockets.values() if socket.host is host]

    # -- connections

    async def connect(
        self, loop: SimLoop, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[SimTransport, asyncio.BaseProtocol]:
        source = HOST.get()
        if source is None:
            raise OSError(errno.ENETUNREACH, "only code that runs on a simulated host can connect")
        listener = await self._find(source, host, port)
        client = SimSocket(self, source, (source.address, self.ephemeral_port()), (host, port))
        server = SimSocket(self, listener.host, (host, port), client.local)
        client.peer, server.peer = server, client
        listener.enqueue(server)
        self.loop.note("connect", source.name, host, port)
        try:
            await asyncio.sleep(self.latency(listener.host))
        except asyncio.CancelledError:
            client.close()
            raise
        protocol = factory()
        transport = SimTransport(loop, client, protocol)
        try:
            await transport.started
        except asyncio.CancelledError:
            transport.close()
            raise
        return transport, protocol

    async def _find(self, source: SimHost, address: str, port: int) -> SimListeningSocket:
        """Send SYNs, at growing intervals while there is no answer."""
        give_up_at = self.loop.time() + self.quality.give_up_seconds
        interval = 1.0
        while True:
            await asyncio.sleep(self.latency(source))
            destination = self.hosts.get(address)
            if destination is None:
                raise OSError(errno.EHOSTUNREACH, f"no host has the address {address}")
            if self.reachable(source, destination) and self.reachable(destination, source):
                listener = self.listeners.get((address, port))
                if listener is None:
                    await asyncio.sleep(self.latency())
                    raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens on {address}:{port}")
                if not listener.full:
                    return listener
            if self.loop.time() >= give_up_at:
                raise TimeoutError(errno.ETIMEDOUT, f"{address}:{port} does not answer")
            await asyncio.sleep(interval)
            interval *= 2

    # -- faults

    def cut(self, source: SimHost, destination: SimHost, *, both_ways: bool = True) -> None:
        links = [(source.address, destination.address)]
        if both_ways:
            links.append((destination.address, source.address))
        for link in links:
            self._cut[link] = self._cut.get(link, 0) + 1

    def join(self, source: SimHost, destination: SimHost, *, both_ways: bool = True) -> None:
        """Undo one `cut`; a link works again when all its cuts are undone."""
        links = [(source.address, destination.address)]
        if both_ways:
            links.append((destination.address, source.address))
        for link in links:
            left = self._cut.pop(link, 0) - 1
            if left > 0:
                self._cut[link] = left
        self._go_on()

    def heal(self) -> None:
        """Let all links work again, and deliver what was held back."""
        self._cut.clear()
        self._delays.clear()
        self._go_on()

    def _go_on(self) -> None:
        for socket in list(self.sockets.values()):
            if isinstance(socket, SimSocket):
                socket.pump()

    def delay(self, host: SimHost, seconds_max: float) -> None:
        """Let everything that the host sends take up to `seconds_max` longer; 0 ends this."""
        if seconds_max:
            self._delays[host.address] = seconds_max
        else:
            self._delays.pop(host.address, None)

    def connections(self, host: SimHost) -> list[SimSocket]:
        return [socket for socket in self._of(host) if isinstance(socket, SimSocket)]

    def close_all(self, host: SimHost) -> None:
        """Close every socket of a dead process, as its kernel does."""
        for socket in self._of(host):
            socket.close()

    def vanish(self, host: SimHost) -> None:
        """Lose the sockets of a machine without power: none is closed, and bytes not yet on the wire are lost."""
        host.off = True
        for socket in self._of(host):
            socket.vanish()


class HostNet:
    """The network as one host sees it: the `Net` port of the server."""

    def __init__(self, net: SimNet, host: SimHost) -> None:
        self._net = net
        self._host = host

    def listen(self, host: str, port: int) -> SimListeningSocket:
        if host not in ("", "0.0.0.0", "localhost", self._host.address, self._host.name):
            raise OSError(errno.EADDRNOTAVAIL, f"{host} is no address of {self._host.name}")
        return self._net.listen(self._host, port)
