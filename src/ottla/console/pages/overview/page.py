"""The overview: how the cluster is, what it does now, and what changed lately."""

from __future__ import annotations

from ottla.console.answers import Fragment, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, tag
from ottla.console.pages.overview.audited import audited_changes
from ottla.console.pages.overview.charts import charts
from ottla.console.pages.overview.figures import broker_states, leading_figures
from ottla.console.pages.overview.findings import findings
from ottla.console.parts.times import clock
from ottla.console.parts.words import card, cards, link, live, notice, told
from ottla.console.routing import page
from ottla.console.sampling.health import ClusterHealth
from ottla.console.sampling.history import ClusterHistory
from ottla.model import limits

_SHOWN_CHANGES = 15
_NO_METRICS = "No node tells its metrics: what was written is measured by offsets and sizes, every few samples."


@page("/")
async def overview(call: PageCall) -> Page:
    history, health = ClusterHistory.of(call.access), ClusterHealth.of(call.access)
    await history.look()
    await health.look(anew="anew" in call.query, changed_ms=history.changed_ms)
    every_s = limits.CONSOLE_SAMPLE_S
    return Page(
        "Overview",
        [
            live("/overview/now", every_s, _now(history), id_="now"),
            card("Health", live("/overview/health", 2 * every_s, findings(health)), id_="health"),
            live("/overview/flow", every_s, _flow(history), id_="flow"),
        ],
    )


@page("/overview/now")
async def overview_now(call: PageCall) -> Fragment:
    history = ClusterHistory.of(call.access)
    await history.look()
    return Fragment(_now(history))


@page("/overview/flow")
async def overview_flow(call: PageCall) -> Fragment:
    history = ClusterHistory.of(call.access)
    await history.look()
    return Fragment(_flow(history))


@page("/overview/health")
async def overview_health(call: PageCall) -> Fragment:
    history, health = ClusterHistory.of(call.access), ClusterHealth.of(call.access)
    await health.look(changed_ms=history.changed_ms)
    return Fragment(findings(health))


def _now(history: ClusterHistory) -> Content:
    return [leading_figures(history), cards(card("Brokers", broker_states(history)), _unseen(history))]


def _flow(history: ClusterHistory) -> Content:
    told_of = None
    if history.now is not None and not history.has_metrics:
        told_of = notice(_NO_METRICS)
    newest = None if history.last is None else history.last.audited
    audited = None if newest is None else card("Who changed what", audited_changes(newest))
    return [told_of, cards(*charts(history), card("What changed lately", _changes(history)), audited)]


def _unseen(history: ClusterHistory) -> Content:
    """What cannot be read."""
    if not history.missing:
        return None
    return card("Not known", [notice(told(each), "fair") for each in history.missing])


def _changes(history: ClusterHistory) -> Markup:
    if not history.changes:
        return tag("p", "Nothing has changed since somebody looks here.", class_="empty")
    rows = [
        tag(
            "li",
            tag("span", clock(each.time_ms), class_="count"),
            " ",
            tag("span", class_=f"dot {each.mood}"),
            " ",
            link(told(each.what), each.to) if each.to else told(each.what),
        )
        for each in list(history.changes)[:_SHOWN_CHANGES]
    ]
    return tag("ul", rows, class_="plain-list")
