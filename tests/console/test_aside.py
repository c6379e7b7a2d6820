"""Work beside the loop that serves pages: its result, its errors and its end."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.support.waiting import until_async

from ottla.client.admin import Admin
from ottla.client.errors import NotConnected
from ottla.console.access import Access
from ottla.console.options import ConsoleOptions
from ottla.testing.broker import EmbeddedBroker


async def _now(value: bool) -> bool:
    return value


def test_work_is_done_elsewhere_with_one_client(broker: EmbeddedBroker) -> None:
    async def visit() -> None:
        access = Access(ConsoleOptions(broker.bootstrap))
        seen: list[tuple[Admin, int]] = []

        async def work(admin: Admin) -> list[str]:
            seen.append((admin, threading.get_ident()))
            return await admin.topics.names()

        try:
            await access.admin.topics.create("asked-aside", 1)
            assert "asked-aside" in await access.aside(work)
            await asyncio.gather(*(access.aside(work) for _ in range(5)))
        finally:
            await access.close()
        assert len(set(seen)) == 1, "one client, one thread"
        ((admin, thread),) = set(seen)
        assert admin is not access.admin and thread != threading.get_ident()

    asyncio.run(visit())


def test_an_error_comes_back(broker: EmbeddedBroker) -> None:
    async def fail(_: Admin) -> None:
        raise LookupError("here")

    async def visit() -> None:
        access = Access(ConsoleOptions(broker.bootstrap))
        try:
            with pytest.raises(LookupError, match="here"):
                await access.aside(fail)
        finally:
            await access.close()

    asyncio.run(visit())


def test_who_leaves_ends_the_work(broker: EmbeddedBroker) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def endless(_: Admin) -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    async def visit() -> None:
        access = Access(ConsoleOptions(broker.bootstrap))
        try:
            waiting = asyncio.ensure_future(access.aside(endless))
            await until_async(lambda: _now(begun.is_set()))
            waiting.cancel()
            await until_async(lambda: _now(ended.is_set()))
        finally:
            await access.close()

    asyncio.run(visit())


def test_the_end_of_a_session_closes_the_client(broker: EmbeddedBroker) -> None:
    kept: list[Admin] = []

    async def keep(admin: Admin) -> None:
        kept.append(admin)
        await admin.nodes.describe()

    async def visit() -> None:
        access = Access(ConsoleOptions(broker.bootstrap))
        await access.aside(keep)
        await access.close()
        with pytest.raises(NotConnected):
            await access.aside(keep)
        assert len(kept) == 1, "no client is made that nobody closes"
        with pytest.raises(NotConnected):
            await kept[0].nodes.describe()

    asyncio.run(visit())
