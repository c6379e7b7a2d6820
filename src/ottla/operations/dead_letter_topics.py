"""Which topics have dead letters: those whose names say so, and those that share groups name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.model.group_settings import SHARE_DLQ_TOPIC
from ottla.model.resources import Resource, ResourceType
from ottla.operations.cluster.view import TOPICS_AT_ONCE

if TYPE_CHECKING:
    from ottla.client.admin import Admin

_ENDINGS = ("dlq", "dlt", "dead-letter", "dead-letters", "dead_letters", "deadletter", "deadletters")


def is_named_for_letters(topic: str) -> bool:
    return topic.lower().endswith(_ENDINGS)


async def topics_of_share_groups(admin: Admin, groups: Sequence[str]) -> dict[str, str]:
    """Return the topic that each of these share groups names, if it names one and may be seen."""
    resources = [Resource(ResourceType.GROUP, each) for each in groups]
    told = await settings_each(admin, resources, SHARE_DLQ_TOPIC.name)
    return {group: topic for group, values in told.items() if (topic := values[SHARE_DLQ_TOPIC.name])}


async def settings_each(admin: Admin, resources: Sequence[Resource], *names: str) -> Mapping[str, dict[str, str]]:
    """Return these settings of the resources that may be seen; empty where there is none."""
    found: dict[str, dict[str, str]] = {}
    for first in range(0, len(resources), TOPICS_AT_ONCE):
        some = resources[first : first + TOPICS_AT_ONCE]
        for resource, entries in (await admin.configs.describe_each(some, names)).found.items():
            values = {each.name: each.value or "" for each in entries}
            found[resource.name] = {name: values.get(name, "") for name in names}
    return found
