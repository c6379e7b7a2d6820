"""Pipelines on a terminal: the live view of a run, lines of JSON, tables of statuses."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

from ottla.cli.terminal.output import err, literal, note, out, print_table
from ottla.observe import logs
from ottla.operations.formats import size_text, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.table import Table

    from ottla.cli.nodes.start import LogFormat
    from ottla.spark.pipelines.status import PipelineStatus

_COLUMNS = ("query", "batch", "rows", "in/s", "done/s", "lag", "behind", "watermark", "state", "late", "batch time")


log = logging.getLogger(__name__)


@contextlib.contextmanager
def logging_as(log_format: LogFormat) -> Iterator[None]:
    """A context in which warnings, and with JSON the events of the run, too, are written to stderr in this format."""
    level = "INFO" if log_format == "json" else "WARNING"
    handler = logs.set_up(sys.stderr, level=level, style=log_format)
    try:
        yield
    finally:
        logs.tear_down(handler)


@contextlib.contextmanager
def events(name: str, *, as_json: bool, log_format: LogFormat) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that shows the events of a run: as JSON on stdout, as lines of a JSON log or, on a terminal, a live
    table on stderr, else as lines there.
    """
    if as_json:
        yield print_event
    elif log_format == "json":
        yield lambda event: log.info("%s", _line_of(event))
    elif err().is_terminal:
        with _Live(name) as live:
            yield live.take
    else:
        yield _print_line


def print_event(event: dict[str, Any]) -> None:
    """Print an event as a line of JSON on stdout."""
    sys.stdout.write(json.dumps(event, default=str) + "\n")
    sys.stdout.flush()


def _print_line(event: dict[str, Any]) -> None:
    note(_line_of(event))


def _line_of(event: dict[str, Any]) -> str:
    kind = event["event"]
    if kind == "progress":
        shown = ", ".join(f"{name} {value}" for name, value in zip(_COLUMNS[1:], cells(event)[1:], strict=True))
        return f"{event['query']}: {shown}"
    if kind == "started":
        return f"{event['query']} → {event['target']}"
    return f"{event['pipeline']}: {told(event)}"


def told(event: dict[str, Any]) -> str:
    """The text of an event, without the name of the pipeline."""
    kind, error = event["event"], event.get("error")
    if kind == "waiting":
        return f"waiting for the broker: {error}"
    if kind != "restarting":
        return f"{kind}: {error}" if error else str(kind)
    if not event["number"]:
        return f"{error}; it is started again when the broker is back"
    return f"{error}; it is started again in {event['in_seconds']:g} s ({event['number']} of {event['limit']})"


class _Live:
    """A table that is updated in place."""

    def __init__(self, name: str) -> None:
        from rich.live import Live

        self._name = name
        self._state = "starting"
        self._queries: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._live = Live(console=err(), get_renderable=self._table, refresh_per_second=2)

    def __enter__(self) -> _Live:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def take(self, event: dict[str, Any]) -> None:
        if event["event"] in ("restarting", "waiting"):
            note(f"{self._name}: {told(event)}")  # printed above the table, where it stays
        with self._lock:
            if event["event"] == "progress":
                self._queries[event["query"]] = event
            elif event["event"] == "started":
                self._queries.setdefault(event["query"], {"query": event["query"], "phase": "first batch running"})
            else:
                self._state = event["event"]

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        with self._lock:
            title = Text(f"{self._name}: {self._state}")
            table = Table(title=title, title_justify="left", box=None, header_style="bold cyan")
            for column in _COLUMNS:
                table.add_column(column, justify="left" if column in ("query", "watermark") else "right")
            for name in sorted(self._queries):
                table.add_row(*cells(self._queries[name]))
            return table


def cells(figures: dict[str, Any]) -> list[str]:
    """The figures of a query, in the order of `_COLUMNS`."""
    batch, behind = figures.get("batch"), figures.get("lag_seconds")
    took_ms, rows = figures.get("batch_ms"), figures.get("state_rows")
    return [
        figures["query"],
        _text(figures.get("phase") if batch is None else batch),
        _text(figures.get("total_rows")),
        _text(figures.get("input_rate")),
        _text(figures.get("processed_rate")),
        _text(figures.get("lag")),
        "-" if behind is None else f"{behind:.1f} s",
        _text(figures.get("watermark")),
        f"{rows} rows, {size_text(figures['state_bytes'])}" if rows else "-",
        _text(figures.get("total_late_rows")),
        "-" if took_ms is None else f"{took_ms / 1000:.2f} s",
    ]


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def row_of(status: PipelineStatus) -> dict[str, Any]:
    """A pipeline as a row of a list. Its lag is unknown if that of any of its queries is."""
    lags = [each.get("lag") for each in status.queries]
    seconds = [each["lag_seconds"] for each in status.queries if each.get("lag_seconds") is not None]
    running = status.state == "running"
    return {
        "pipeline": status.name,
        "state": status.state,
        "queries": len(status.queries),
        "rows/s": sum(each.get("processed_rate") or 0 for each in status.queries) if running else None,
        "lag": sum(lags) if lags and None not in lags else None,
        "lag_seconds": max(seconds) if seconds else None,
        "host": status.host,
        "updated": time_text(status.updated_ms),
        "restarts": status.restarts,
        "error": status.error,
        "last_error": status.last_error,
    }


def print_status(status: PipelineStatus) -> None:
    console = out()
    where = literal(f"{status.state}  {status.host} process {status.pid}  {status.spark}")
    console.print(f"[bold]{literal(status.name)}[/bold]  {where}")
    console.print(f"file {status.file}", markup=False)
    console.print(f"checkpoints {status.checkpoint} (replayed {status.generation} times)", markup=False)
    console.print(f"started {time_text(status.started_ms)}, last heard of {time_text(status.updated_ms)}", markup=False)
    if status.restarts:
        said = f"queries were started again {status.restarts} times, last {time_text(status.last_error_ms)}"
        console.print(f"{said}: {status.last_error}", markup=False)
    if status.error:
        console.print(f"error: {status.error}", style="red", markup=False)
    if status.queries:
        print_table(_COLUMNS, [cells(each) for each in status.queries], right=_COLUMNS[1:7])
