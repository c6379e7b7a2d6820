"""All pipelines, and one of them; both live."""

from __future__ import annotations

from dataclasses import replace

from ottla.client.options import wall_clock_ms
from ottla.console.answers import Fragment, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.pipelines.desk import PipelineDesk, desk_of, number_of
from ottla.console.pages.pipelines.details import details
from ottla.console.pages.pipelines.words import (
    lag_text,
    mood_of,
    rate_text,
    seconds_text,
    since_text,
    sum_of,
)
from ottla.console.parts.charts import spark_line
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import badge, card, code, figure, figures, link, live, notice, told
from ottla.console.routing import page
from ottla.spark.pipelines.status import LIVE, PipelineStatus

_EVERY_S = 3
_ERROR_CHARS = 300
_ERRORS_SHOWN = 5


@page("/pipelines")
async def pipelines_page(call: PageCall) -> Page:
    return Page("Pipelines", live(path_to("pipelines", "-", "part", **call.query), _EVERY_S, await _all(call)))


@page("/pipelines/-/part")
async def pipelines_part(call: PageCall) -> Fragment:
    return Fragment(await _all(replace(call, path="/pipelines")))  # where the links of the table lead


@page("/pipelines/{name}")
async def pipeline_page(call: PageCall) -> Page:
    name = call.params["name"]
    status = await desk_of(call.access).status(name)
    actions = None
    if call.may_change and status.state in LIVE:
        buttons = [
            link("Restart its queries", path_to("pipelines", name, "restart"), class_="button plain"),
            " ",
            link("Stop", path_to("pipelines", name, "stop"), class_="button plain"),
        ]
        actions = tag("p", buttons)
    shown = live(path_to("pipelines", name, "part"), _EVERY_S, details(desk_of(call.access), status))
    return Page(name, [actions, shown], (("Pipelines", "/pipelines"),))


@page("/pipelines/{name}/part")
async def pipeline_part(call: PageCall) -> Fragment:
    desk = desk_of(call.access)
    return Fragment(details(desk, await desk.status(call.params["name"])))


async def _all(call: PageCall) -> Content:
    desk = desk_of(call.access)
    found = list((await desk.statuses()).values())
    if not found:
        said = ["No pipeline was run on this cluster yet: ", code("ottla pipeline run FILE"), " runs one."]
        return card("Pipelines", tag("p", said, class_="empty"))
    failed = sum(each.state in ("failed", "lost") for each in found)
    head = figures(
        figure("running", sum(each.state in LIVE for each in found), mood="good"),
        figure("failed or lost", failed, mood="bad" if failed else "plain"),
        figure("rows a second", rate_text(_sum(found, "processed_rate"))),
        figure("records behind", lag_text(_sum(found, "lag"))),
    )
    table = listing(call, _columns(desk), found, text=_text, sort="pipeline", noun="pipeline")
    errors = [_error(each) for each in found if each.error]
    rest = tag("p", f"and {len(errors) - _ERRORS_SHOWN} more errors") if len(errors) > _ERRORS_SHOWN else None
    return [head, errors[:_ERRORS_SHOWN], rest, card("Pipelines", table)]


def _sum(statuses: list[PipelineStatus], name: str) -> float | None:
    """Over the pipelines that run now; those that do not know it are left out."""
    found = [value for each in statuses if each.state in LIVE and (value := sum_of(each, name)) is not None]
    return sum(found) if found else None


def _behind(status: PipelineStatus) -> float | None:
    found = [value for each in status.queries if (value := number_of(each, "lag_seconds")) is not None]
    return max(found) if found else None


def _text(status: PipelineStatus) -> str:
    return f"{status.name} {status.state} {status.host} {status.error or ''}"


def _state(status: PipelineStatus) -> Content:
    return badge(told(status.state), mood_of(status))


def _error(status: PipelineStatus) -> Markup:
    error = status.error or ""
    short = error if len(error) <= _ERROR_CHARS else error[: _ERROR_CHARS - 1] + "…"
    return notice([_name(status), ": ", told(short)], mood_of(status))


def _name(status: PipelineStatus) -> Markup:
    return link(told(status.name), path_to("pipelines", status.name))


def _columns(desk: PipelineDesk) -> tuple[Column[PipelineStatus], ...]:
    return (
        Column("Pipeline", _name, lambda each: each.name.lower()),
        Column("State", _state, lambda each: each.state),
        Column("Queries", lambda each: len(each.queries), lambda each: len(each.queries), is_number=True),
        Column(
            "Rows a second",
            lambda each: rate_text(sum_of(each, "processed_rate")) if each.state in LIVE else "",
            lambda each: sum_of(each, "processed_rate"),
            is_number=True,
        ),
        Column("Lately", lambda each: spark_line(desk.rates(each.name)) if each.state in LIVE else None),
        Column("Lag", lambda each: lag_text(sum_of(each, "lag")), lambda each: sum_of(each, "lag"), is_number=True),
        Column("Behind", lambda each: seconds_text(_behind(each)), _behind, is_number=True),
        Column("Restarts", lambda each: each.restarts, lambda each: each.restarts, is_number=True),
        Column("Heard of", lambda each: since_text(each.updated_ms, wall_clock_ms()), lambda each: each.updated_ms),
    )
