"""One pipeline: its run, its queries, what went wrong, and charts of what was seen while somebody looked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.client.options import wall_clock_ms
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.pipelines.desk import PipelineDesk, PipelinePoint, number_of, text_of
from ottla.console.pages.pipelines.words import (
    lag_text,
    mood_of,
    rate_text,
    seconds_text,
    since_text,
    sum_of,
)
from ottla.console.parts.charts import Line, line_chart
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import badge, card, cards, code, facts, figure, figures, link, notice, told, visible
from ottla.model import limits
from ottla.operations.formats import size_text, time_text
from ottla.spark.pipelines.status import LIVE, PipelineStatus

_NONE = "no query has started yet"
_TOPICS_SHOWN = 5
_HINTS = {
    "lost": "its driver has written nothing for a while: the process, or its machine, is gone",
    "waiting": "it goes on by itself when the broker is back",
}


def details(desk: PipelineDesk, status: PipelineStatus) -> Content:
    """All of the page that changes."""
    return [
        _head(status),
        _error(status),
        card("Queries", plain_table(_columns(status), status.queries[: limits.CONSOLE_ROWS], empty=_NONE)),
        _charts(desk, status),
        card("Run", facts(_run(status))),
    ]


def _head(status: PipelineStatus) -> Markup:
    lag, is_live = sum_of(status, "lag"), status.state in LIVE
    behind = [value for each in status.queries if (value := number_of(each, "lag_seconds")) is not None]
    size = sum_of(status, "state_bytes")
    return figures(
        figure("state", told(status.state), mood=mood_of(status)),
        figure("rows a second", rate_text(sum_of(status, "processed_rate")) if is_live else "-"),
        figure("records behind", lag_text(lag)),
        figure("behind", seconds_text(max(behind) if behind else None)),
        figure("state kept", "-" if size is None else size_text(int(size))),
        figure("restarts", status.restarts, mood="fair" if status.restarts else "plain", note="after errors"),
    )


def _error(status: PipelineStatus) -> Content:
    """What ended the run, or what its queries were restarted for."""
    said: list[Content] = []
    if status.error:
        hint = _HINTS.get(status.state)
        said.append(notice(told(status.error), "bad" if status.state in ("failed", "lost") else "fair", hint))
    elif status.state in _HINTS:
        said.append(notice(f"the pipeline is {status.state}", "fair", _HINTS[status.state]))
    if status.last_error and status.last_error != status.error:
        when = since_text(status.last_error_ms, wall_clock_ms())
        said.append(notice([f"last restart, {when}: ", told(status.last_error)], "fair"))
    if status.state not in LIVE and status.file:
        again = ["to run it again: ", code(f"ottla pipeline run {status.file}"), " on ", told(status.host)]
        said.append(tag("p", again))
    return said


def _run(status: PipelineStatus) -> list[tuple[Content, Content]]:
    pairs: list[tuple[Content, Content]] = [
        ("file", code(status.file) if status.file else "unknown"),
        ("host", [told(status.host), f", process {status.pid}"]),
        ("Spark", told(status.spark)),
        ("checkpoints", [code(status.checkpoint), f", replayed {status.generation} times"]),
        ("started", time_text(status.started_ms)),
        ("heard of", since_text(status.updated_ms, wall_clock_ms())),
    ]
    if status.restarted_ms:
        pairs.append(("restarted by request", since_text(status.restarted_ms, wall_clock_ms())))
    return pairs


def _charts(desk: PipelineDesk, status: PipelineStatus) -> Content:
    if status.state not in LIVE:
        return None
    past = {each["query"]: desk.past(status.name, each["query"]) for each in status.queries[:8]}
    now_s = status.updated_ms / 1000

    def chart(title: str, value: Callable[[PipelinePoint], float | None], text: Callable[[float], str]) -> Markup:
        lines = [
            Line(visible(name[:60]), [(each.at_s, value(each)) for each in points]) for name, points in past.items()
        ]
        return tag("section", line_chart(title, lines, text, now_s=now_s), class_="card")

    return cards(
        chart("Rows processed a second", lambda each: each.processed_rate, rate_text),
        chart("Rows arriving a second", lambda each: each.input_rate, rate_text),
        chart("Records behind", lambda each: each.lag, lag_text),
        chart("Seconds behind", lambda each: each.lag_seconds, seconds_text),
        chart("State kept", lambda each: each.state_bytes, lambda size: size_text(int(size))),
    )


def _batch(figures: Mapping[str, object]) -> Content:
    batch = number_of(figures, "batch")
    if batch is not None:
        return f"{batch:.0f}"
    return badge(told(text_of(figures, "phase") or "not started"), "fair")


def _state_kept(figures: Mapping[str, object]) -> str:
    rows, size = number_of(figures, "state_rows"), number_of(figures, "state_bytes")
    return f"{rows:,.0f} rows, {size_text(int(size))}" if rows and size is not None else "-"


def _seconds(name: str, scale: float = 1.0) -> Callable[[Mapping[str, object]], str]:
    def text(figures: Mapping[str, object]) -> str:
        value = number_of(figures, name)
        return seconds_text(None if value is None else value / scale)

    return text


def _column(title: str, name: str, text: Callable[[float | None], str]) -> Column[Mapping[str, object]]:
    return Column(title, lambda each: text(number_of(each, name)), is_number=True)


def _columns(status: PipelineStatus) -> list[Column[Mapping[str, object]]]:
    columns = list(_COLUMNS)
    if any(status.writes.values()):
        columns.append(Column("Writes", lambda each: _written(status.writes.get(str(each["query"]), []))))
    return columns


def _written(topics: list[str]) -> Content:
    """The topics of a query, each with the way to its totals."""
    shown = [
        tag("div", link(told(each), path_to("topics", each)), " ", link("totals", path_to("topics", each, "totals")))
        for each in topics[:_TOPICS_SHOWN]
    ]
    return [shown, f"and {len(topics) - _TOPICS_SHOWN} more" if len(topics) > _TOPICS_SHOWN else None]


_COLUMNS: tuple[Column[Mapping[str, object]], ...] = (
    Column("Query", lambda each: told(str(each["query"]))),
    Column("Batch", _batch, is_number=True),
    _column("Rows", "total_rows", lag_text),
    _column("In a second", "input_rate", rate_text),
    _column("Done a second", "processed_rate", rate_text),
    _column("Lag", "lag", lag_text),
    Column("Behind", _seconds("lag_seconds"), is_number=True),
    Column("Watermark", lambda each: told(text_of(each, "watermark") or "-")),
    Column("State", _state_kept),
    _column("Late rows", "total_late_rows", lag_text),
    Column("Batch took", _seconds("batch_ms", 1000), is_number=True),
)
