"""Stages: done in order, undone in reverse order, also after a start or an undo that failed."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable

import pytest

from ottla.log.files.disk import StorageError
from ottla.server.loop.stages import Stage, Stages


class Story:
    """Makes stages that tell what is done and undone."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def plain(self, name: str) -> Stage:
        return Stage(name, lambda: self.told.append(f"do {name}"), lambda: self.told.append(f"undo {name}"))

    def waiting(self, name: str) -> Stage:
        async def step(verb: str) -> None:
            self.told.append(f"begin to {verb} {name}")
            await asyncio.sleep(0)
            self.told.append(f"{verb} {name}")

        return Stage(name, lambda: step("do"), lambda: step("undo"))

    def failing(self, name: str, error: Exception) -> Callable[[], None]:
        def fail() -> None:
            self.told.append(f"fail at {name}")
            raise error

        return fail


def test_stages_are_undone_in_reverse_order() -> None:
    story = Story()

    async def run() -> None:
        stages = Stages()
        await stages.run([story.plain("one"), story.waiting("two"), story.plain("three")])
        story.told.append("up")
        await stages.undo()
        await stages.undo()  # nothing is left to undo

    asyncio.run(run())
    assert story.told == [
        *("do one", "begin to do two", "do two", "do three"),
        "up",
        *("undo three", "begin to undo two", "undo two", "undo one"),
    ]


def test_a_stage_may_have_only_one_of_its_steps() -> None:
    story = Story()
    only_do = story.plain("one")._replace(undo=None)
    only_undo = story.plain("two")._replace(do=None)

    async def run() -> None:
        stages = Stages()
        await stages.run([only_do, only_undo])
        await stages.undo()

    asyncio.run(run())
    assert story.told == ["do one", "undo two"]


def test_stages_that_do_not_wait_share_a_turn_of_the_loop() -> None:
    story = Story()

    async def run() -> None:
        asyncio.get_running_loop().call_soon(story.told.append, "another turn")
        await Stages().run([story.plain("one"), story.plain("two")])
        await asyncio.sleep(0)

    asyncio.run(run())
    assert story.told == ["do one", "do two", "another turn"]


@pytest.mark.parametrize("waits", [False, True])
def test_after_a_start_that_failed_only_what_was_done_is_undone(waits: bool) -> None:
    story = Story()
    fail = story.failing("three", OSError("no port"))

    async def fail_later() -> None:
        await asyncio.sleep(0)
        fail()

    broken = Stage("three", fail_later if waits else fail, lambda: story.told.append("undo three"))

    async def run() -> None:
        stages = Stages()
        with pytest.raises(OSError, match="no port"):
            await stages.run([story.plain("one"), story.plain("two"), broken, story.plain("four")])
        await stages.undo()

    asyncio.run(run())
    assert story.told == ["do one", "do two", "fail at three", "undo two", "undo one"]


def test_later_stages_are_undone_first() -> None:
    story = Story()

    async def run() -> None:
        stages = Stages()
        await stages.run([story.plain("one")])
        await stages.run([story.plain("two")])
        await stages.undo()

    asyncio.run(run())
    assert story.told[2:] == ["undo two", "undo one"]


@pytest.mark.parametrize(
    ("error", "told", "has_traceback"),
    [(StorageError(errno.EIO, "disk gone"), "disk gone", False), (ValueError("a mistake"), "the stop goes on", True)],
    ids=["a disk", "a mistake of ours"],
)
def test_an_undo_that_fails_is_logged_and_the_others_go_on(
    error: Exception, told: str, has_traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    story = Story()
    broken = story.plain("two")._replace(undo=story.failing("two", error))

    async def run() -> None:
        stages = Stages()
        await stages.run([story.plain("one"), broken, story.waiting("three")])
        await stages.undo()

    asyncio.run(run())
    assert story.told[-3:] == ["undo three", "fail at two", "undo one"]
    (record,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert told in record.getMessage() and bool(record.exc_info) is has_traceback
