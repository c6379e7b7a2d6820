"""Tracebacks that several threads format at once: see `tests.support.parsing`."""

from __future__ import annotations

import ast
import gc
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.parsing import IS_CONCERNED, one_at_a_time

from ottla.wire.message import build

THREADS = 4
SOURCE = "\n".join(f"value_{number} = [{number} + 1, (2, {{3: 4}})]" for number in range(100))


@pytest.fixture
def hurried_threads() -> Iterator[None]:
    """Threads that take turns, and garbage collections with Python code in them, as often as possible."""

    def watch(phase: str, info: dict[str, int]) -> None:
        for _ in range(100):
            pass

    interval_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    gc.callbacks.append(watch)
    try:
        yield
    finally:
        gc.callbacks.remove(watch)
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval_s)


def in_threads(work: Callable[[], object]) -> None:
    """Do the same in several threads at once; raise what one of them raises."""
    barrier = threading.Barrier(THREADS)

    def begin() -> None:
        barrier.wait()
        work()

    with ThreadPoolExecutor(THREADS) as threads:
        for each in [threads.submit(begin) for _ in range(THREADS)]:
            each.result()


def test_tracebacks_are_formatted(hurried_threads: None) -> None:
    divide = build(f"def divide(zero):\n    return 1 / (zero{' * (zero - 1)' * 50})\n", "<divide>", {}, "divide")

    def fail() -> None:
        for _ in range(20):
            try:
                divide(0)
            except ZeroDivisionError:
                assert "~~^~~" in traceback.format_exc()

    in_threads(fail)


def test_sources_are_read(hurried_threads: None) -> None:
    in_threads(lambda: [ast.parse(SOURCE) for _ in range(10)])


@pytest.mark.skipif(not IS_CONCERNED, reason="this Python parses in many threads")
def test_without_the_lock_it_fails(hurried_threads: None) -> None:
    """Else the tests above could not fail."""
    unguarded = getattr(ast.parse, "__wrapped__")  # noqa: B009  # functools.wraps has set it
    with pytest.raises(SystemError, match="recursion depth mismatch"):
        in_threads(lambda: [unguarded(SOURCE) for _ in range(30)])


def test_a_failed_parse_leaves_the_collector_on() -> None:
    with pytest.raises(SyntaxError):
        one_at_a_time(ast.parse)("(")
    assert gc.isenabled()
