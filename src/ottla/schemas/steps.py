"""Recursion without Python's call stack: chains of schemas may be longer than Python calls may be deep."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


def run(look: Callable[[Ask], Generator[Ask, Answer, Answer]], ask: Ask) -> Answer:
    """Return the result of `look` for `ask`. `look` is a generator that yields further questions and is sent the
    answers.
    """
    waiting = [look(ask)]
    answer: Answer | None = None
    while True:
        try:
            # None starts a generator; a waiting one is sent the answer to its question.
            asked = waiting[-1].send(answer)  # type: ignore[arg-type]
        except StopIteration as done:
            answer = done.value
            waiting.pop()
            if not waiting:
                return done.value  # type: ignore[no-any-return]
        else:
            waiting.append(look(asked))
            answer = None
