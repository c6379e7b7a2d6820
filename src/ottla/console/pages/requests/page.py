"""The requests that brokers handle, by API: rates, errors, times; live, from the metrics of the nodes."""

from __future__ import annotations

from typing import NamedTuple

from ottla.console.answers import Fragment, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, tag
from ottla.console.parts.charts import Line, line_chart, spark_line
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.times import ms_text, per_s
from ottla.console.parts.words import badge, card, cards, figure, figures, link, live, notice, told
from ottla.console.routing import page
from ottla.console.sampling.history import ClusterHistory
from ottla.console.sampling.moment import ApiMoment, ClusterMoment, points
from ottla.model import limits
from ottla.observe.metrics.catalogue import requests as of_requests
from ottla.operations.metrics.samples import Labels
from ottla.operations.sampling.rates import is_error, per_second

_DRAWN = 5
_SPARKS = 60
_HOW_TO_TELL = "The setting ottla.metrics.listener of a node has it tell them; the console must reach that address."
_NOT_OTTLA = "This needs Ottla's nodes: a real Kafka tells its metrics by JMX only."


class _ErrorRate(NamedTuple):
    api: str
    error: str
    per_s: float
    total: int


@page("/requests")
async def requests(call: PageCall) -> Page:
    history = ClusterHistory.of(call.access)
    await history.look()
    of_one = tag("p", "Who asked for what, and what failed: ", link("requests of one client", "/requests/client"), ".")
    return Page("Requests", [of_one, live("/requests/now", limits.CONSOLE_SAMPLE_S, await _content(call, history))])


@page("/requests/now")
async def requests_now(call: PageCall) -> Fragment:
    history = ClusterHistory.of(call.access)
    await history.look()
    return Fragment(await _content(call, history))


async def _content(call: PageCall, history: ClusterHistory) -> Content:
    if not history.has_metrics:
        hint = _HOW_TO_TELL if await call.access.is_ottla() else _NOT_OTTLA
        reasons = [notice(told(each), "fair") for each in history.missing]
        return [notice("No node tells its metrics, which requests are counted in.", "fair", hint), reasons]
    if not history.moments:
        return notice("Measuring: two samples are needed.")
    moments = list(history.moments)
    last = moments[-1]
    busiest = [each.api for each in last.apis[:_DRAWN]]
    rates = [Line(api, points(moments, lambda each, api=api: _of(each, api))) for api in busiest]  # type: ignore[misc]
    times = [Line(api, points(moments, lambda each, api=api: each.p99_ms(api))) for api in busiest]  # type: ignore[misc]
    return [
        figures(
            figure("requests", per_s(last.requests or 0)),
            figure("errors in answers", per_s(last.errors or 0), mood="fair" if last.errors else "good"),
        ),
        cards(
            card("Rate", line_chart("Requests per second: the most frequent", rates, per_s)),
            card("Time", line_chart("99th percentile of the time of a request", times, ms_text)),
        ),
        card("By API", plain_table(_columns(moments), last.apis)),
        card("Errors", plain_table(_ERRORS, _errors(history), empty="No request has failed since the nodes started.")),
    ]


def _of(moment: ClusterMoment, api: str) -> float | None:
    if not moment.apis:
        return None
    return next((each.per_s for each in moment.apis if each.api == api), 0.0)


def _columns(moments: list[ClusterMoment]) -> list[Column[ApiMoment]]:
    lately = moments[-_SPARKS:]
    return [
        Column("Request", lambda row: told(row.api)),
        Column("Rate", lambda row: per_s(row.per_s), is_number=True),
        Column(
            "Errors", lambda row: badge(per_s(row.errors_per_s), "fair") if row.errors_per_s else "0", is_number=True
        ),
        Column("p99", lambda row: "" if row.p99_ms is None else ms_text(row.p99_ms), is_number=True),
        Column("Lately", lambda row: spark_line([_of(each, row.api) for each in lately])),
    ]


def _errors(history: ClusterHistory) -> list[_ErrorRate]:
    """The errors of all nodes by API and code: now, and since the nodes started."""
    before, now = history.before, history.now
    assert now is not None, "there are metrics"
    totals: dict[tuple[str, str], float] = {}
    rates: dict[tuple[str, str], float] = {}
    for node_id, found in now.metrics.items():
        earlier = None if before is None else before.metrics.get(node_id)
        for labels, value in found.of(of_requests.ERRORS.name):
            if is_error(labels):
                totals[_key(labels)] = totals.get(_key(labels), 0.0) + value
        if before is None or earlier is None:
            continue
        for labels, grown in found.growth(earlier, of_requests.ERRORS.name):
            rates[_key(labels)] = rates.get(_key(labels), 0.0) + (per_second(grown, now.at_s - before.at_s) or 0.0)
    rows = [_ErrorRate(*key, rates.get(key, 0.0), round(total)) for key, total in totals.items()]
    return sorted(rows, key=lambda each: (-each.per_s, -each.total))[: limits.CONSOLE_ROWS]


def _key(labels: Labels) -> tuple[str, str]:
    return labels.get("request", ""), labels.get("error", "")


_ERRORS: tuple[Column[_ErrorRate], ...] = (
    Column("Request", lambda row: told(row.api)),
    Column("Error", lambda row: told(row.error)),
    Column("Now", lambda row: per_s(row.per_s), is_number=True),
    Column("Since the start", lambda row: f"{row.total:,}", is_number=True),
)
