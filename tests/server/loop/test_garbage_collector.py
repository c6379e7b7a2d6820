"""What a long collection has looked at is not looked at again."""

import gc
from collections.abc import Iterator

import pytest

from ottla.model import limits
from ottla.server.loop.garbage_collector import keep_short, note_unneeded, unneeded_count

LONG_S = 2 * limits.COLLECTION_MS_MAX / 1000


@pytest.fixture
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("thawed")
@pytest.mark.parametrize("took_s", [LONG_S, LONG_S / 4])
def test_only_what_took_long_is_put_aside(took_s: float) -> None:
    now_s = 0.0

    def clock_s() -> float:
        nonlocal now_s
        now_s += took_s
        return now_s

    before = gc.get_freeze_count()
    stop = keep_short(clock_s)
    gc.collect()
    stop()
    assert (gc.get_freeze_count() > before) == (took_s == LONG_S)


@pytest.mark.usefixtures("thawed")
def test_a_young_collection_puts_nothing_aside() -> None:
    """Circles that nobody refers to may wait in the older generations: put aside, they would stay for ever."""
    times_s = iter(range(1_000))
    before = gc.get_freeze_count()
    stop = keep_short(lambda: float(next(times_s)))
    gc.collect(0)
    gc.collect(1)
    stop()
    assert gc.get_freeze_count() == before


class Circle:
    """Freed by the garbage collector only."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.usefixtures("thawed")
@pytest.mark.parametrize("count", [limits.UNNEEDED_KEPT_MAX, limits.UNNEEDED_KEPT_MAX + 1])
def test_many_closed_connections_are_found_though_they_were_put_aside(count: int) -> None:
    times_s = iter(range(1_000))
    before = unneeded_count()
    stop = keep_short(lambda: float(next(times_s)))
    circles = [Circle() for _ in range(count)]
    gc.collect()  # all are put aside
    for each in circles:
        note_unneeded(each)
    del circles, each
    gc.collect()
    assert (unneeded_count() > before) == (count == limits.UNNEEDED_KEPT_MAX), "few are not worth a long look"
    gc.unfreeze()
    gc.collect()
    stop()


def test_it_ends() -> None:
    before = list(gc.callbacks)
    keep_short()()
    assert gc.callbacks == before
