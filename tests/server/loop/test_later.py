"""Later: each reader of an answer is told when there will be none."""

from __future__ import annotations

import asyncio

import pytest

from ottla.server.loop.later import AnswerFailed, Disconnect, Later, gather, settled


def test_a_reader_hears_of_a_failure_whenever_it_happened() -> None:
    before: Later[int] = Later()
    before.fail()
    after: Later[int] = Later()
    told: list[str] = []
    before.then(pytest.fail, lambda: told.append("before"))
    after.then(pytest.fail, lambda: told.append("after"))
    assert told == ["before"]
    after.fail()
    after.fail()
    assert told == ["before", "after"], "once"
    assert before.done and before.failed


def test_who_awaits_or_takes_an_answer_that_failed_disconnects() -> None:
    failed: Later[int] = Later()
    failed.fail()
    with pytest.raises(AnswerFailed):
        failed.taken()

    async def wait() -> int:
        late: Later[int] = Later()
        asyncio.get_running_loop().call_soon(late.fail)
        return await late

    with pytest.raises(Disconnect):
        asyncio.run(wait())


def test_answers_that_were_gathered_fail_when_all_are_known() -> None:
    first: Later[int] = Later()
    last: Later[int] = Later()
    gathered = gather([first, settled(2), last])
    first.fail()
    assert not gathered.done
    last.set(3)
    assert gathered.failed
    assert gather([settled(1), settled(2)]).taken() == [1, 2]
    assert gather([]).taken() == []
