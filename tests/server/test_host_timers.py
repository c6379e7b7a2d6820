"""The timer of a coordinator's host, and clocks that jump."""

from types import SimpleNamespace
from typing import Any

from ottla.server.host import Host


class Loop:
    """Remembers after how long it was to call."""

    def __init__(self) -> None:
        self.delays_s: list[float] = []

    def call_later(self, delay_s: float, callback: Any) -> Any:
        self.delays_s.append(delay_s)
        return SimpleNamespace(cancel=lambda: None)


def test_a_timer_that_is_overdue_does_not_hold_up_the_others() -> None:
    loop, clock, runner = Loop(), SimpleNamespace(now_ms=1_000), SimpleNamespace(next_deadline_ms=601_000)
    host: Any = Host.__new__(Host)
    host._runner, host._closed, host._timer, host._timer_ms = runner, False, None, None
    host._owner, host._services = SimpleNamespace(loop=loop), SimpleNamespace(now_ms=lambda: clock.now_ms)
    host._arm()
    host._arm()
    assert loop.delays_s == [600.0]
    clock.now_ms += 3_600_000  # the clock is set forward: what is due later than that would wait ten minutes, too
    host._arm()
    assert loop.delays_s == [600.0, 0.0]
