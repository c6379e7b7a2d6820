"""One broker: its log directories, its largest replicas, what it supports."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ottla.client.admin.nodes import Feature, LogDir, ReplicaSize
from ottla.client.metadata import AdvertisedBroker
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to, tag
from ottla.console.pages.brokers.parts import BROKERS, disk_use, state_of
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import badge, card, cards, code, facts, link, notice, told
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import page
from ottla.console.sampling.history import ClusterHistory
from ottla.model.errors import ErrorCode
from ottla.observe.metrics.catalogue.process import BUILD
from ottla.operations.cluster.view import PATIENCE_S, disks
from ottla.operations.formats import size_text

_LARGEST = 20


class _PlacedReplica(NamedTuple):
    path: str
    replica: ReplicaSize


async def broker_of(call: PageCall) -> AdvertisedBroker:
    """The broker that the path names."""
    described = await call.admin.nodes.describe(fenced=True)
    named = call.params["broker"]
    found = next((each for each in described.brokers if str(each.node_id) == named), None)
    if found is None:
        raise RefusedRequest(404, f"there is no broker {named[:40]}")
    return found


@page("/brokers/{broker}")
async def broker(call: PageCall) -> Page:
    found = await broker_of(call)
    node_id = found.node_id
    title = f"Broker {node_id}"
    about = [
        ("address", told(str(found.address))),
        ("rack", told(found.rack) if found.rack else "none"),
        ("state", state_of(is_fenced=found.is_fenced)),
        ("software", _software(call, node_id)),
    ]
    actions = tag(
        "p",
        link("Settings", path_to("brokers", node_id, "settings")),
        " · ",
        link("Move its leaders away", path_to("brokers", node_id, "drain", leaders_only="on")),
        " · ",
        link("Move everything away", path_to("brokers", node_id, "drain")),
    )
    if found.is_fenced:
        down = notice("It does not answer: its disks and features are not known.", "bad")
        return Page(title, [down, card("About", facts(about), actions)], trail=(BROKERS,))
    directories, features = await asyncio.gather(disks(call.admin, [node_id]), _features(call, node_id))
    listed = directories.get(node_id, [])
    replicas = [_PlacedReplica(each.path, replica) for each in listed for replica in each.replicas]
    replicas.sort(key=lambda each: -each.replica.size_bytes)
    return Page(
        title,
        [
            cards(card("About", facts(about), actions), card("Features", plain_table(_FEATURES, features))),
            card("Log directories", plain_table(_DIRECTORIES, listed, empty="it does not tell them")),
            card(f"The largest of {len(replicas):,} replicas", plain_table(_REPLICAS, replicas[:_LARGEST])),
        ],
        trail=(BROKERS,),
    )


async def _features(call: PageCall, node_id: int) -> list[Feature]:
    async with asyncio.timeout(PATIENCE_S):
        return await call.admin.nodes.features(node_id)


def _software(call: PageCall, node_id: int) -> Content:
    """The version that the broker tells in its metrics, if somebody has looked at the overview."""
    sample = ClusterHistory.of(call.access).now
    told_of = None if sample is None else sample.metrics.get(node_id)
    labels = [] if told_of is None else [each for each, _ in told_of.of(BUILD.name)]
    return f"Ottla {labels[0].get('version', '')}" if labels else "not told"


def _errors(row: LogDir) -> Content:
    return badge("ok", "good") if row.error == ErrorCode.NONE else badge(row.error.name, "bad")


_DIRECTORIES: tuple[Column[LogDir], ...] = (
    Column("Directory", lambda row: code(row.path)),
    Column("State", _errors),
    Column("Replicas", lambda row: f"{len(row.replicas):,}", is_number=True),
    Column("Log", lambda row: size_text(sum(each.size_bytes for each in row.replicas)), is_number=True),
    Column("Disk", lambda row: disk_use(row.total_bytes, row.usable_bytes if row.usable_bytes >= 0 else None)),
)
_REPLICAS: tuple[Column[_PlacedReplica], ...] = (
    Column("Topic", lambda row: link(told(row.replica.topic), path_to("topics", row.replica.topic))),
    Column("Partition", lambda row: row.replica.partition, is_number=True),
    Column("Size", lambda row: size_text(row.replica.size_bytes), is_number=True),
    Column("Behind", lambda row: f"{row.replica.offset_lag:,}", is_number=True),
    Column("Directory", lambda row: code(row.path)),
)
_FEATURES: tuple[Column[Feature], ...] = (
    Column("Feature", lambda row: told(row.name)),
    Column("Level", lambda row: "none" if row.finalized is None else row.finalized, is_number=True),
    Column("Supported", lambda row: f"{row.min_version} to {row.max_version}", is_number=True),
)
