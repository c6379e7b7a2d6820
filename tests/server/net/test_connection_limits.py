"""Who may come in, and how a listener behaves when nobody may for now."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from tests.server.talk import BROKER, alter
from tests.support.requests.raw import Closed, RawConnection

from ottla.model import limits
from ottla.model.node_config import NodeConfig
from ottla.security.protocol import SecurityProtocol
from ottla.server.api import dispatch
from ottla.server.api.dispatcher import Dispatcher
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.slices import Slices
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.net.listener import Listener
from ottla.server.security.listener_security import ListenerSecurity
from ottla.server.security.logins import Logins
from ottla.server.settings.configs import SINGLE_NODE
from ottla.server.settings.listeners import ListenerAddress
from ottla.server.storage.cold_reads import ColdReads
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest

HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")


class Loop:
    def time(self) -> float:
        return 0.0

    def __init__(self) -> None:
        self.reader: Callable[[], None] | None = None
        self.later: list[Callable[[], None]] = []

    def add_reader(self, fileno: int, callback: Callable[[], None]) -> None:
        self.reader = callback

    def remove_reader(self, fileno: int) -> None:
        self.reader = None

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        self.later.append(callback)


class NoDescriptors:
    """A listening socket of a process that has used up its descriptors."""

    def fileno(self) -> int:
        return 7

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 9092

    def accept(self) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    def close(self) -> None:
        pass


def test_a_listener_without_descriptors_does_not_spin() -> None:
    loop = Loop()
    runtime = Runtime(cast(Any, loop), now_ms=lambda: 0, rng=random.Random(1))
    cold = ColdReads(loop, runtime.disk_threads(1), lambda partition: None)
    door = ConnectionLimits(NodeConfig(SINGLE_NODE).broker, RequestMemory(-1))
    address, dispatcher = ListenerAddress("PLAINTEXT", "127.0.0.1", 9092), Dispatcher(dispatch.ROUTES, None)
    plain = ListenerSecurity(SecurityProtocol.PLAINTEXT, None, None)
    listener = Listener(address, NoDescriptors(), runtime, cold, door, plain, dispatcher, cast(Any, None), Logins(None))
    assert loop.reader is not None
    loop.reader()
    assert loop.reader is None, "it does not look again at once"
    (again,) = loop.later
    again()
    assert loop.reader is not None
    listener.close()
    loop.reader = None
    again()
    assert loop.reader is None, "a closed listener stays closed"


def test_the_door_is_full_when_connections_have_their_descriptors() -> None:
    door = ConnectionLimits(NodeConfig(SINGLE_NODE).broker, RequestMemory(-1), 2)
    for _ in range(2):
        assert not door.full
        door.entered(_connection())
    assert door.full, "though max.connections allows more"
    door.configure(NodeConfig({**SINGLE_NODE, "max.connections": "100"}).broker)
    assert door.full


def _connection() -> Any:
    class Somebody:
        context = SimpleNamespace(connection=SimpleNamespace(remote_address=("127.0.0.1", 1)))

    return Somebody()


def test_limits_change_while_the_node_runs(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as first:
        alter(first, BROKER, "", max_connections_per_ip=1)
        with RawConnection(ottla_broker.bootstrap) as second:
            try:
                second.call(HELLO, 3)
                raise AssertionError("there is one already")
            except (Closed, OSError):
                pass
        alter(first, BROKER, "", max_connections_per_ip_overrides="[::ffff:127.0.0.1]:2")  # the same address
        with RawConnection(ottla_broker.bootstrap) as second:
            second.call(HELLO, 3)


def test_connections_are_tidied_some_at_a_time() -> None:
    """Each may have requests that nobody told of: 2,000 of them took 1.4 s of the event loop."""
    events: list[str] = []

    class Connection:
        closed = False

        def tidy(self, now: float, max_idle_s: float) -> None:
            events.append("tidied")

    async def test() -> None:
        loop = asyncio.get_running_loop()
        door = ConnectionLimits(NodeConfig(SINGLE_NODE).broker, RequestMemory(-1))
        door.connections = dict.fromkeys(cast(Any, Connection()) for _ in range(20))
        tidying = asyncio.ensure_future(door.tidy(loop, Slices(loop)))
        while not tidying.done():
            events.append("another")
            await asyncio.sleep(0)

    asyncio.run(test())
    assert events.count("tidied") == 20
    between = "".join("t" if event == "tidied" else " " for event in events).split()
    assert max(map(len, between)) <= limits.CONNECTIONS_TIDIED_PER_SLICE
