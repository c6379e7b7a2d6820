"""The cluster's part of a support bundle: what the doctor reads of it, and the metrics of each node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

from ottla.cli.terminal.plain import print_warning
from ottla.client.admin.asking import one_by_one
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.model.limits import BUNDLE_GROUPS_MAX
from ottla.operations.doctor.cluster.cluster_seen import ClusterSeen, SeenPart
from ottla.operations.doctor.cluster.reading import read_cluster
from ottla.operations.metrics.endpoint import NoMetricsError, metrics_of

if TYPE_CHECKING:
    from ottla.cli.bundle.archive import BundleArchive
    from ottla.client.admin import Admin
    from ottla.client.admin.group_descriptions import GroupDescription
    from ottla.client.security.security import Security

T = TypeVar("T")
_GROUPS_S = 30.0
_SAMPLE_S = 1.0
_AS_THEY_ARE = ("asked_ms", "now_ms", "brokers", "unreachable", "has_registry")
_ELSEWHERE = ("settings", "subjects")


@dataclass(frozen=True, slots=True)
class BundledCluster:
    """What was read of a cluster; `groups` are the descriptions of groups, or why there are none."""

    seen: ClusterSeen
    groups: SeenPart[dict[str, GroupDescription]]
    undescribed: Mapping[str, str]  # groups that could not be described, and why


async def read_for_bundle(admin: Admin, advance: Callable[[str], None]) -> BundledCluster:
    """Raises if no broker answers; whatever else cannot be read is noted in its part."""
    seen = await read_cluster(admin, _SAMPLE_S, None, advance, print_warning)
    advance("cluster: reading members of groups")
    names = [each.group_id for each in seen.groups.value or ()][:BUNDLE_GROUPS_MAX]
    try:
        async with asyncio.timeout(_GROUPS_S):
            found = await one_by_one(names, admin.groups.describe)
    except TimeoutError:
        return BundledCluster(seen, SeenPart(None, f"no answer within {_GROUPS_S:.0f} s"), {})
    except (ApiError, ClientError) as error:
        return BundledCluster(seen, SeenPart(None, str(error)), {})
    return BundledCluster(seen, SeenPart(found.found), {name: str(error) for name, error in found.failed.items()})


def add_cluster(archive: BundleArchive, cluster: BundledCluster, advance: Callable[[str], None]) -> None:
    """Add what was read; what is missing goes into the manifest."""
    seen = cluster.seen
    archive.add_json("cluster/brokers.json", seen.brokers, "brokers as they are registered")
    for broker in seen.brokers:
        if broker.is_fenced or broker.node_id in seen.unreachable:
            why = seen.unreachable.get(broker.node_id, "it is fenced: the controller takes it for dead")
            archive.miss(f"broker {broker.node_id} at {broker.address}", why)
    for field in fields(seen):
        if field.name not in (*_AS_THEY_ARE, *_ELSEWHERE):
            advance(f"bundle: {field.name}")
            _add_part(archive, field.name, getattr(seen, field.name))
    _add_part(archive, "group_descriptions", cluster.groups)
    more = len(seen.groups.value or ()) - BUNDLE_GROUPS_MAX
    if more > 0:
        archive.miss(f"members of {more} more groups", f"those of the first {BUNDLE_GROUPS_MAX} are there")
    for group, why in cluster.undescribed.items():
        archive.miss(f"group {group}", why)
    _add_settings(archive, seen)


def _add_part(archive: BundleArchive, name: str, part: SeenPart[T]) -> None:
    what = name.replace("_", " ")
    match part.value:
        case None:
            archive.miss(what, part.reason)
        case list() as values:
            archive.add_lines(f"cluster/{name}.jsonl", values, what)
        case dict() as values:
            lines = ({"of": str(key), "is": value} for key, value in values.items())
            archive.add_lines(f"cluster/{name}.jsonl", lines, what)
        case value:
            archive.add_json(f"cluster/{name}.json", value, what)


def _add_settings(archive: BundleArchive, seen: ClusterSeen) -> None:
    if seen.settings.value is None:
        archive.miss("settings of brokers", seen.settings.reason)
    for node_id, settings in (seen.settings.value or {}).items():
        shown = {"settings": archive.redaction.settings(settings.values), "hidden": sorted(settings.hidden)}
        archive.add_json(f"cluster/settings-{node_id}.json", shown, f"settings of broker {node_id} other than defaults")


def add_metrics(
    archive: BundleArchive, seen: ClusterSeen, security: Security | None, advance: Callable[[str], None]
) -> None:
    """Add what each node tells about itself."""
    for broker in seen.brokers:
        what = f"metrics of node {broker.node_id}"
        settings = (seen.settings.value or {}).get(broker.node_id)
        if settings is None:
            archive.miss(what, seen.unreachable.get(broker.node_id, "its settings could not be read"))
            continue
        advance(f"bundle: {what}")
        try:
            told = metrics_of(broker, settings.values, security)
        except NoMetricsError as error:
            archive.miss(what, str(error))
        else:
            archive.add_text(f"metrics/node-{broker.node_id}.txt", told.text, what)
