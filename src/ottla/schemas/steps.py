"""Recursion without a stack: schemas use each other in chains longer than Python calls may be deep."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


def run(look: Callable[[Ask], Generator[Ask, Answer, Answer]], ask: Ask) -> Answer:
    """What `look` returns for `ask`. It is a generator: whatever else it has to know it asks for with `yield`."""
    waiting = [look(ask)]
    answer: Answer | None = None
    while True:
        try:
            # None starts a generator; one that waits is sent what it asked for.
            asked = waiting[-1].send(answer)  # type: ignore[arg-type]
        except StopIteration as done:
            answer = done.value
            waiting.pop()
            if not waiting:
                return done.value  # type: ignore[no-any-return]
        else:
            waiting.append(look(asked))
            answer = None
