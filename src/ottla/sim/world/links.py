"""The links between simulated hosts, as sockets use them: delays, cuts, and the registered sockets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Protocol

from ottla.sim.world.loop import SimHost, SimLoop


@dataclass(slots=True)
class LinkQuality:
    """How the network behaves; the fault schedule changes it at any time."""

    latency_seconds: tuple[float, float] = (0.0001, 0.003)
    spike_rate: float = 0.01
    spike_seconds: float = 0.2
    bytes_per_second: float = 100e6
    short_rate: float = 0.1
    window_bytes: int = 256 * 1024
    give_up_seconds: float = 30.0
    backlog: int = 128
    reset_rate: float = 0.0


class Attached(Protocol):
    """A socket, as the network sees it."""

    @property
    def number(self) -> int: ...

    @property
    def host(self) -> SimHost: ...

    def readable(self) -> bool: ...

    def writable(self) -> bool: ...

    def close(self) -> None: ...

    def vanish(self) -> None: ...


class Links:
    """All links between all hosts. Its callbacks belong to no host, so they run even if hosts die."""

    def __init__(self, loop: SimLoop, rng: random.Random, quality: LinkQuality | None = None) -> None:
        self.loop = loop
        self.rng = rng
        self.quality = quality if quality is not None else LinkQuality()
        self.hosts: dict[str, SimHost] = {}
        self.sockets: dict[int, Attached] = {}
        self._cut: dict[tuple[str, str], int] = {}  # directed link → how often it is cut
        self._delays: dict[str, float] = {}  # by address
        self._context = copy_context()
        self._next_number = 1000

    def register(self, socket: Attached) -> int:
        number = self._next_number
        self._next_number += 1
        self.sockets[number] = socket
        self.loop.register(number, socket)
        return number

    def unregister(self, socket: Attached) -> None:
        self.sockets.pop(socket.number, None)
        self.loop.unregister(socket.number)

    def reachable(self, source: SimHost, destination: SimHost) -> bool:
        """Whether packets get from one host to the other and find its kernel running."""
        up = self.hosts.get(destination.address)
        return up is not None and not up.off and (source.address, destination.address) not in self._cut

    # -- time on the wire

    def later(self, delay_seconds: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        return self.loop.call_later(delay_seconds, callback, *args, context=self._context)

    def latency(self, source: SimHost | None = None) -> float:
        low, high = self.quality.latency_seconds
        delay = self.rng.uniform(low, high)
        if source is not None and source.address in self._delays:
            delay += self.rng.uniform(0, self._delays[source.address])
        if self.rng.random() < self.quality.spike_rate:
            delay += self.rng.uniform(0, self.quality.spike_seconds)
        return delay

    def shortened(self, size_bytes: int) -> int:
        """Return how many of these bytes a call really moves."""
        if size_bytes > 1 and self.rng.random() < self.quality.short_rate:
            return self.rng.randint(1, size_bytes)
        return size_bytes
