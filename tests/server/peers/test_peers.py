"""Connections between nodes: made when needed, made again, and their end is heard of at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import WAIT_S

from ottla.client.connection import Address
from ottla.client.errors import ClientError, NotConnected
from ottla.model import limits
from ottla.server.peers.peers import Peers, Reach, probe
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest

ASK_MS = 10_000
ASK = DescribeClusterRequest(include_cluster_authorized_operations=False)


def _address(broker: EmbeddedBroker) -> Address:
    host, _, port = broker.bootstrap.rpartition(":")
    return Address(host, int(port))


def test_the_end_of_a_node_is_heard_and_its_return_found(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path / "data")
    broker.start()
    address = _address(broker)

    async def talk() -> None:
        peers = Peers("test")
        lost = asyncio.Event()
        forget = peers.on_lost(address, lost.set)
        answers = await asyncio.gather(*(peers.ask(address, ASK, timeout_ms=ASK_MS) for _ in range(3)))
        assert {answer.error_code for answer in answers} == {0}
        assert await probe(address, ASK_MS) is Reach.LISTENS
        await asyncio.to_thread(broker.stop)
        await asyncio.wait_for(lost.wait(), WAIT_S)
        assert await probe(address, ASK_MS) is Reach.REFUSES
        with pytest.raises(NotConnected, match="refused"):
            await peers.ask(address, ASK, timeout_ms=ASK_MS)
        forget()
        await peers.close()
        with pytest.raises(ClientError, match="stopping"):
            await peers.ask(address, ASK, timeout_ms=ASK_MS)

    try:
        asyncio.run(talk())
    finally:
        broker.stop()


def test_a_connection_that_breaks_is_made_again(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data") as broker:
        address = _address(broker)

        async def talk() -> None:
            peers = Peers("test")
            first = await peers.connect(address, timeout_ms=ASK_MS)
            assert await peers.connect(address, timeout_ms=ASK_MS) is first
            assert await peers.connect(address, timeout_ms=ASK_MS, purpose="other") is not first
            first.close()
            second = await peers.connect(address, timeout_ms=ASK_MS)
            assert second is not first and second.is_open
            await peers.close()
            assert not second.is_open

        asyncio.run(talk())


@pytest.mark.parametrize(
    "address",
    [
        Address("127.0.0.1", 70_000),
        Address("127.0.0.1", -1),
        Address("x" * 300, 9_092),
        Address("a..b", 1),
        Address("a\0b", 1),
    ],
)
def test_what_is_no_address_is_somewhere_nobody_listens(address: Address) -> None:
    """Brokers and voters say themselves where they are."""

    async def talk() -> None:
        peers = Peers("test")
        with pytest.raises(NotConnected):
            await peers.ask(address, ASK, timeout_ms=ASK_MS)
        assert await probe(address, ASK_MS) is Reach.SILENT
        await peers.close()

    asyncio.run(talk())


def test_of_too_many_addresses_those_go_where_nobody_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PEER_LINKS_MAX", 3)
    broker = EmbeddedBroker(tmp_path / "data")
    broker.start()

    async def talk() -> None:
        peers = Peers("test")
        lost: list[int] = []
        peers.on_lost(_address(broker), lambda: lost.append(1))
        await peers.ask(_address(broker), ASK, timeout_ms=ASK_MS)
        for port in range(1, 9):
            with pytest.raises(NotConnected):
                await peers.ask(Address("127.0.0.1", port), ASK, timeout_ms=ASK_MS)
        assert len(peers._links) == 3
        await peers.ask(_address(broker), ASK, timeout_ms=ASK_MS)
        assert not lost
        await peers.close()

    try:
        asyncio.run(talk())
    finally:
        broker.stop()


def test_a_name_server_that_hangs_is_asked_once_per_name() -> None:
    async def talk() -> None:
        loop = asyncio.get_running_loop()
        asked: list[str] = []

        async def hangs(host: str, *_: Any, **__: Any) -> Any:
            asked.append(host)
            await asyncio.sleep(3_600)

        loop.getaddrinfo = hangs  # type: ignore[method-assign]
        peers = Peers("test", connect_timeout_ms=20)
        for _ in range(3):
            for purpose in ("one", "two"):
                with pytest.raises(NotConnected, match="the name silent"):
                    await peers.ask(Address("silent", 1), ASK, timeout_ms=ASK_MS, purpose=purpose)
        assert asked == ["silent"]
        await peers.close()

    asyncio.run(talk())


def test_who_is_cancelled_in_the_moment_of_the_end_stays_cancelled() -> None:
    """An error instead would be one that nobody looks at any more."""

    async def talk() -> None:
        loop = asyncio.get_running_loop()

        async def hangs(*_: Any, **__: Any) -> Any:
            await asyncio.sleep(3_600)

        loop.getaddrinfo = hangs  # type: ignore[method-assign]
        peers = Peers("test")
        given_up, patient = (
            loop.create_task(peers.ask(Address("silent", 1), ASK, timeout_ms=ASK_MS)) for _ in range(2)
        )
        await asyncio.sleep(0.01)
        closing = loop.create_task(peers.close())
        await asyncio.sleep(0)  # the attempt to connect ends with the next step
        given_up.cancel()
        await closing
        with pytest.raises(asyncio.CancelledError):
            await given_up
        with pytest.raises(NotConnected, match="was closed"):
            await patient

    asyncio.run(talk())
