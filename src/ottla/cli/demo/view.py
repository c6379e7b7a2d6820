"""The progress display of the demo: a live table on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.demo.results import Windows
from ottla.cli.terminal.output import out

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

_LINE_EVERY_S = 5.0
_WINDOWS_SHOWN = 6


class Lag(NamedTuple):
    """How far a query is behind; None until it has committed an offset. `phase` is its activity before its first batch
    is done.
    """

    query: str
    records: int | None
    seconds: float | None
    phase: str | None = None


class DemoMoment(NamedTuple):
    """The state of the demo at one moment."""

    phase: str
    told: int
    total: int
    told_per_s: float
    sold: int
    sold_per_s: float
    lags: tuple[Lag, ...]
    windows: Windows


class View:
    """`show` displays the current state; `say` prints a line above it."""

    def __init__(self) -> None:
        self._live: Live | None = None
        self._line_s = 0.0

    def __enter__(self) -> View:
        if out().is_terminal:
            from rich.live import Live

            self._live = Live(console=out(), refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        out().print(text)

    def show(self, now: DemoMoment, *, at_once: bool = False) -> None:
        """Display the state; as a line only every few seconds, unless `at_once` is set."""
        if self._live is not None:
            self._live.update(_table(now))
        elif at_once or time.monotonic() - self._line_s >= _LINE_EVERY_S:
            self._line_s = time.monotonic()
            lags = ", ".join(f"{lag.query} {lag_text(lag)}" for lag in now.lags)
            out().print(
                f"   [dim]{now.phase}:[/dim] {now.told:,} of {now.total:,} events, {now.sold:,} sales, "
                f"{len(now.windows)} windows; lag: {lags}"
            )


def _table(now: DemoMoment) -> RenderableType:
    from rich.console import Group
    from rich.table import Table

    flow = Table(title=now.phase, title_justify="left", title_style="bold", box=None, padding=(0, 2))
    for name in ("", "records", "per second", "lag"):
        flow.add_column(name, justify="right" if name else "left")
    flow.add_row("shop → orders, payments", f"{now.told:,}", f"{now.told_per_s:,.0f}", "")
    for lag in now.lags:
        sold = lag.query == "sales"
        records, rate = (f"{now.sold:,}", f"{now.sold_per_s:,.0f}") if sold else (f"{len(now.windows):,} windows", "")
        flow.add_row(f"Spark → {lag.query}", records, rate, lag_text(lag))
    latest = Table(box=None, padding=(0, 2))
    for name in ("window", "country", "sales", "revenue"):
        latest.add_column(name, justify="right" if name in ("sales", "revenue") else "left")
    for (start_ms, country), (sales, cents) in sorted(now.windows.items())[-_WINDOWS_SHOWN:]:
        begin = datetime.fromtimestamp(start_ms / 1000, UTC)
        latest.add_row(f"{begin:%H:%M}", country, f"{sales:,}", f"{cents / 100:,.2f}")
    return Group(flow, "", latest) if now.windows else flow


def lag_text(lag: Lag) -> str:
    """The lag as the table and the lines show it."""
    if lag.records is None:
        return lag.phase or "starting"
    notes = [f"{lag.seconds:.1f} s"] if lag.seconds else []
    notes += [lag.phase] if lag.phase else []
    return f"{lag.records:,} ({', '.join(notes)})" if notes else f"{lag.records:,}"
