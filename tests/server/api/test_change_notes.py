"""Notes of changes: each request is noted once, by the node that has carried it out or may have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.changes.notes import noted
from ottla.server.api.context import Context
from ottla.server.api.needs import Needs
from ottla.server.loop.later import Large, Later, Sliced, settled
from ottla.server.quorum.not_controller import NotController
from ottla.wire.messages.security.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

REFUSED = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
REQUEST = ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=-1)


class Listening:
    """What the notes need of a context."""

    is_audited = True

    def __init__(self) -> None:
        self.notes: list[bool] = []

    def note_change(self, api: str, named: str, *, is_allowed: bool = True) -> None:
        assert (api, named) == ("Expire", "it")
        self.notes.append(is_allowed)


def response(code: ErrorCode = ErrorCode.NONE) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=int(code), expiry_timestamp_ms=0)


async def soon(outcome: Any) -> Any:
    await asyncio.sleep(0)
    return outcome


def ask(answer: Any, refuses: tuple[ErrorCode, ...]) -> tuple[Any, list[bool]]:
    """Return the answer with the notes around it, and the notes."""
    context = Listening()
    handle = noted(lambda *_: answer, "Expire", Needs(changes=lambda _: iter(["it"]), refuses=refuses))
    return handle(REQUEST, cast("Context", context)), context.notes


WAYS: dict[str, Callable[[Any], Any]] = {
    "at once": lambda outcome: outcome,
    "later": settled,
    "awaited": soon,
    "task": lambda outcome: asyncio.ensure_future(soon(outcome)),
    "sliced": lambda outcome: Sliced(soon(outcome), changes=True),
}
OUTCOMES: dict[str, tuple[Any, list[bool]]] = {
    "done": (response(), [True]),
    "large": (Large(response()), [True]),
    "refused": (response(REFUSED), [False]),
    "refused by an error": (ApiError(REFUSED), [False]),
    "failed": (response(ErrorCode.REQUEST_TIMED_OUT), [True]),
    "another node's": (NotController(), []),
}


@pytest.mark.parametrize("refuses", [(REFUSED,), ()])
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("way", WAYS)
def test_one_note_when_the_outcome_is_known(way: str, outcome: str, refuses: tuple[ErrorCode, ...]) -> None:
    given, expected = OUTCOMES[outcome]

    async def run() -> list[bool]:
        answer, notes = ask(WAYS[way](given), refuses)
        got = await answer if isinstance(answer, Awaitable) else answer
        assert got is given
        return notes

    assert asyncio.run(run()) == (expected if refuses else [True] * len(expected))


def test_an_answer_that_nobody_waits_for_is_noted() -> None:
    given_up: list[str] = []
    later: Later[Any] = Later()
    later.on_abandon = lambda: given_up.append("work")
    answer, notes = ask(later, ())
    assert notes == []
    answer.abandon()
    assert (notes, given_up) == ([True], ["work"])
    later.set(response())
    assert notes == [True], "once"


def test_an_answer_that_fails_is_noted() -> None:
    later: Later[Any] = Later()
    answer, notes = ask(later, ())
    later.fail()
    assert answer.failed and notes == [True]


@pytest.mark.parametrize("is_task", [True, False])
def test_a_task_that_is_cancelled_is_noted(is_task: bool) -> None:
    async def run() -> list[bool]:
        waiting = asyncio.sleep(3_600, response())
        answer, notes = ask(asyncio.ensure_future(waiting) if is_task else waiting, ())
        task = asyncio.ensure_future(answer)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return notes

    assert asyncio.run(run()) == [True]
