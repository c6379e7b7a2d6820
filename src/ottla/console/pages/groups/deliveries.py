"""Deliveries of a share group: how many records its members hold, and what became of what they got.

No API of Kafka's tells it. Ottla's nodes do in their metrics, each of the partitions that it leads, and for as long as
it runs. They tell few groups by name, and sum up the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.admin.group_descriptions import GroupDescription
from ottla.console.access import Access
from ottla.console.answers import Fragment
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, tag
from ottla.console.named import name_in, named_path
from ottla.console.pages.groups.words import SHARE
from ottla.console.parts.words import card, figure, figures, live, notice, told
from ottla.console.routing import page
from ottla.model import limits
from ottla.observe.metrics.catalogue import lag as metrics
from ottla.observe.metrics.declaration import Metric
from ottla.operations.metrics.samples import MetricSamples
from ottla.operations.sampling.sample import TopSampler

_REST = "(other)"  # the groups that a node does not tell by name
_NOTE = "Of all partitions, since their leaders began to run. Members hold what they got and have not finished."
_FIGURES: tuple[tuple[str, Metric], ...] = (
    ("held by members now", metrics.IN_FLIGHT),
    ("delivered", metrics.ACQUIRED),
    ("of these again", metrics.REDELIVERED),
    ("accepted", metrics.ACKNOWLEDGED),
    ("given up", metrics.ARCHIVED),
)


class ShareDeliveries(NamedTuple):
    """The figures by metric, over the nodes that tell them. `untold` are nodes that do not name the group, and
    `missing` says which do not tell their metrics, and why.
    """

    figures: Mapping[str, float]
    untold: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()


class NodesMetrics:
    """The metrics of the nodes as one user reads them, kept for some seconds."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._sampler = TopSampler(access.admin, access.client_options.known_security)
        self._known: dict[int, MetricSamples] = {}
        self._missing: tuple[str, ...] = ()
        self._until_s = 0.0
        self._turn = asyncio.Lock()

    @classmethod
    def of(cls, access: Access) -> NodesMetrics:
        """The metrics that are kept for this user."""
        return access.kept(cls, cls)

    async def deliveries(self, group_id: str) -> ShareDeliveries:
        """Those of one share group. Viewers who ask at the same time share one answer."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            if loop.time() >= self._until_s:
                described = await self._access.admin.nodes.describe(fenced=True)
                missing = [f"node {each.node_id} is down" for each in described.brokers if each.is_fenced]
                alive = [each for each in described.brokers if not each.is_fenced]
                self._known = await self._sampler.metrics(alive, missing)
                self._missing = tuple(missing)
                self._until_s = loop.time() + limits.CONSOLE_SAMPLE_S / 2
        return deliveries_in(self._known, group_id, self._missing)


def deliveries_in(known: Mapping[int, MetricSamples], group_id: str, missing: tuple[str, ...] = ()) -> ShareDeliveries:
    """The figures of a group in the metrics of nodes. A node that names neither it nor others has none of it."""
    found: dict[str, float] = {metric.name: 0.0 for _, metric in _FIGURES} if known else {}
    untold = []
    for node_id, samples in known.items():
        named = samples.by(metrics.IN_FLIGHT.name, "group")
        if group_id not in named and _REST in named:
            untold.append(node_id)
        for _, metric in _FIGURES:
            found[metric.name] += samples.by(metric.name, "group").get(group_id, 0.0)
    return ShareDeliveries(found, tuple(untold), missing)


async def deliveries_part(call: PageCall, described: GroupDescription) -> Markup | None:
    """The live part for a page of a group; None for groups of another kind."""
    if described.kind != SHARE:
        return None
    shown = _shown(await NodesMetrics.of(call.access).deliveries(described.group_id))
    return live(named_path("groups", described.group_id, "deliveries"), limits.CONSOLE_SAMPLE_S, shown)


@page("/groups/{group}/deliveries")
async def group_deliveries(call: PageCall) -> Fragment:
    group_id = name_in(call, "group")
    await call.admin.groups.describe_as(group_id, SHARE)  # whoever may not see the group sees no figures of it
    return Fragment(_shown(await NodesMetrics.of(call.access).deliveries(group_id)))


def _shown(seen: ShareDeliveries) -> Content:
    title = "Deliveries"
    if not seen.figures:
        why = told("; ".join(seen.missing)) if seen.missing else None
        said = "What members hold is not known: no node tells its metrics here, and no API of Kafka's tells it."
        return card(title, notice(said, "plain", why))
    large = [figure(name, f"{seen.figures[metric.name]:,.0f}") for name, metric in _FIGURES]
    few = "node" if len(seen.untold) == 1 else "nodes"
    more = "It may be more: there are too many groups, so {} {} told this one among others."
    return card(
        title,
        figures(*large),
        notice(more.format(few, ", ".join(map(str, seen.untold))), "fair") if seen.untold else None,
        [notice(["It may be more: ", told(each)], "fair") for each in seen.missing],
        tag("p", _NOTE, class_="hint"),
    )
