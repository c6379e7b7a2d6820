"""Links between nodes where there can be no network namespaces: everything a node says to another goes through a proxy,
which can swallow it, in one direction or both.

Every listener that nodes reach each other by has a door: an address of the proxy, which is what the nodes are told
instead of the listener's own. Clients are told the nodes' own addresses and never come here, for which brokers get a
listener of their own among themselves. Whose connection comes in at a door is found by the process that has its other
end, so one door per listener is enough, as one advertised address is all that a broker has.

A cut link is silent: connections stay open and nothing passes, not even their end; new ones wait. What was said
meanwhile arrives when the link is whole again, as TCP would send it again.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from tests.chaos.owners import owner
from tests.support.ports import free_ports

HOST = "127.0.0.1"
INTERNAL = "INTERNAL"
CHUNK_BYTES = 65_536


class Proxies:
    """`watch` tells it whose processes the nodes are; nobody else may come in at a door."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._gates = {(source, target): asyncio.Event() for source in ids for target in ids}
        for gate in self._gates.values():
            gate.set()
        self._doors: dict[str, str] = {}  # a listener's address → the door's
        self._internal = dict(zip(ids, free_ports(len(ids)), strict=True))
        self._pids: Callable[[], Mapping[int, int]] = dict
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self.carried: Counter[tuple[int, int]] = Counter()  # connections that were passed on, by who dialled whom

    def start(self) -> Proxies:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def watch(self, pids: Callable[[], Mapping[int, int]]) -> None:
        self._pids = pids

    # --- a place for nodes

    def address(self, id: int) -> str:
        return HOST

    def prefix(self, id: int) -> list[str]:
        return []

    def adapted(self, id: int, settings: Mapping[str, str]) -> dict[str, str]:
        """The settings of a node, with which it tells and is told doors instead of addresses."""
        internal = f"{HOST}:{self._internal[id]}"
        voters = dict(entry.split("@") for entry in settings["controller.quorum.voters"].split(","))
        doors = {int(voter): self.door(int(voter), address) for voter, address in voters.items()}
        names = f"{INTERNAL}://{self.door(id, internal)},CONTROLLER://{doors[id]}"
        return dict(settings) | {
            "controller.quorum.voters": ",".join(f"{voter}@{door}" for voter, door in doors.items()),
            "listeners": f"{settings['listeners']},{INTERNAL}://{internal}",
            "advertised.listeners": f"{settings['advertised.listeners']},{names}",
            "inter.broker.listener.name": INTERNAL,
            "listener.security.protocol.map": f"{settings['listener.security.protocol.map']},{INTERNAL}:PLAINTEXT",
        }

    def door(self, target: int, address: str) -> str:
        """Where other nodes find what listens at `address` of node `target`."""
        if address not in self._doors:
            self._doors[address] = self._do(self._open(target, address))
        return self._doors[address]

    # --- what is done to links

    def cut(self, source: int, target: int) -> None:
        """From now on nothing of `source` reaches `target`."""
        self._loop.call_soon_threadsafe(self._gates[source, target].clear)

    def heal(self) -> None:
        for gate in self._gates.values():
            self._loop.call_soon_threadsafe(gate.set)

    # --- in the proxies' own thread

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self, target: int, address: str) -> str:
        (port,) = free_ports(1)

        async def come_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                source = owner(writer.get_extra_info("peername")[1], port, self._pids())
                if source is not None:
                    await self._carry(source, target, address, reader, writer)
            finally:
                writer.transport.abort()

        self._servers.append(await asyncio.start_server(come_in, HOST, port))
        return f"{HOST}:{port}"

    async def _carry(
        self,
        source: int,
        target: int,
        address: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        there, back = self._gates[source, target], self._gates[target, source]
        while not (there.is_set() and back.is_set()):  # a handshake goes both ways
            await there.wait()
            await back.wait()
        host, port = address.split(":")
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return  # nobody listens: the connection ends as soon as it was made
        self.carried[source, target] += 1
        try:
            await asyncio.gather(_pass(reader, far_writer, there), _pass(far_reader, writer, back))
        finally:
            far_writer.transport.abort()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await asyncio.sleep(0)  # what was aborted is closed in the next round


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    """Whatever comes in goes out when the gate is open; so does its end."""
    try:
        while data := await reader.read(CHUNK_BYTES):
            await gate.wait()
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # broken on either side, which is an end like any other
    await gate.wait()
    writer.close()
