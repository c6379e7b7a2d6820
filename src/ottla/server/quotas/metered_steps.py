"""MeteredSteps: work on the event loop whose time is counted, step by step, without the time for which it waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


class MeteredSteps(Generic[T_co]):
    """Awaits `work` and reports the time of each of its steps on the event loop."""

    __slots__ = ("_clock_s", "_spent", "_work")

    def __init__(self, work: Awaitable[T_co], clock_s: Callable[[], float], spent: Callable[[float], None]) -> None:
        self._work = work
        self._clock_s = clock_s
        self._spent = spent

    def __await__(self) -> Generator[object, None, T_co]:
        clock_s = self._clock_s
        steps = self._work.__await__()
        step = partial(next, steps)
        while True:
            begun_s = clock_s()
            try:
                waited_for = step()
            except StopIteration as end:
                result: T_co = end.value
                return result
            finally:
                self._spent(clock_s() - begun_s)
            try:
                yield waited_for
                step = partial(next, steps)
            except BaseException as error:  # a cancellation, for the work to handle
                step = partial(steps.throw, error)
