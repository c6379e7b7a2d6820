"""Who waits for a range of a file that a thread reads: all are told, and a mistake of ours leaves nobody waiting."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.log.files.disk import Cold
from ottla.server.handlers.records import list_offsets
from ottla.server.loop.later import AnswerFailed, Later
from ottla.server.storage.cold_reads import ColdReads
from ottla.sim.world.disk import SimDisk


def cold_range() -> Cold:
    return Cold(SimDisk().open("file", create=True), 0, 10)


def cold_reads() -> ColdReads:
    threads: Any = SimpleNamespace(of=lambda disk: None)
    return ColdReads(asyncio.get_running_loop(), threads, lambda partition: None)


def test_one_that_fails_keeps_nobody_else_from_being_told() -> None:
    async def test() -> None:
        reads, place, told = cold_reads(), cold_range(), asyncio.Event()
        reads.warm(place, "broken", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        reads.warm(place, "sound", told.set)
        await asyncio.wait_for(told.wait(), 60)

    asyncio.run(test())


def test_an_offset_that_cannot_be_looked_up_by_our_own_fault_is_answered() -> None:
    async def test() -> None:
        place, tries = cold_range(), iter([True])

        def answer(_: object) -> Any:
            if next(tries, False):
                raise place
            raise ZeroDivisionError

        context: Any = SimpleNamespace(storage=SimpleNamespace(cold=cold_reads()))
        done: Later[None] = Later()
        search: Any = None
        list_offsets._search(search, answer, lambda _: None, context, done)
        assert not done.done
        with pytest.raises(AnswerFailed):
            await asyncio.wait_for(done, 60)

    asyncio.run(test())
