"""SeenAnswer: sees the answer of one request when it is ready, in whatever form its handler gives it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable

from ottla.server.loop.later import Answer, Later, Sliced

LEFT = "the client has left"
FAILED = "failed"


class SeenAnswer(ABC):
    @abstractmethod
    def answered(self, value: object) -> None:
        """Note the answer, which is ready."""

    @abstractmethod
    def ended(self, reason: str) -> None:
        """Note that there will be no answer."""

    async def making(self, answer: Awaitable[object]) -> object:
        """Return the awaited answer; called within the task that makes it."""
        return await answer

    def seen(self, answer: Answer[object]) -> Answer[object]:
        """Return the answer of a handler to be used in its place."""
        if isinstance(answer, Later):
            return self._seen_later(answer)
        if isinstance(answer, Sliced):
            return Sliced(self._awaited(answer.making), changes=answer.changes)
        if isinstance(answer, Awaitable):
            return self._awaited(answer)
        self.answered(answer)
        return answer

    def _seen_later(self, answer: Later[object]) -> Later[object]:
        passed_on: Later[object] = Later()

        def settle(value: object) -> None:
            self.answered(value)
            passed_on.set(value)

        def fail() -> None:
            self.ended(FAILED)
            passed_on.fail()

        def leave() -> None:
            self.ended(LEFT)
            answer.abandon()

        passed_on.on_abandon = leave
        answer.then(settle, fail)
        return passed_on

    async def _awaited(self, answer: Awaitable[object]) -> object:
        try:
            value = await self.making(answer)
        except BaseException as error:
            self.ended(type(error).__name__)
            raise
        self.answered(value)
        return value
