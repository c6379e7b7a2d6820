"""Rules that keep tenants apart when settings change: no dead letters in topics of another tenant, and no tenant whose
topics could collide with those of another.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.cluster.view import MetadataView
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.group_settings import SHARE_DLQ_TOPIC
from ottla.model.resources import Resource, ResourceType
from ottla.model.setting import Setting
from ottla.model.tenancy.tenants import check_letters, collision_problem, tenants_in
from ottla.model.topic_settings import OTTLA_SCHEMA_VALIDATION_DLQ

_NAMING: dict[int, Setting[str]] = {
    ResourceType.TOPIC: OTTLA_SCHEMA_VALIDATION_DLQ,
    ResourceType.GROUP: SHARE_DLQ_TOPIC,
}


def check_dead_letters(view: MetadataView, resource: Resource, changes: Mapping[str, str | None]) -> None:
    """Refuse a dead-letter topic of another tenant; `changes` are valid settings of a topic or group."""
    setting = _NAMING.get(resource.type)
    text = None if setting is None else changes.get(setting.name)
    if setting is not None and text:
        target = setting.parse(text)
        if target:
            tenants = tenants_in(view.state.config(ResourceType.BROKER, ""), view.defaults)
            check_letters(target, (resource.name,), tenants)


def check_new_tenants(view: MetadataView, changes: Mapping[str, str | None]) -> None:
    """Refuse settings of all brokers that make a tenant whose topics could collide with those of another."""
    before = view.state.config(ResourceType.BROKER, "")
    after = {name: text for name, text in {**before, **changes}.items() if text is not None}
    tenants = tenants_in(after, view.defaults)
    for tenant in tenants.keys() - tenants_in(before, view.defaults).keys():
        problem = collision_problem(tenant, tenants)
        if problem is not None:
            raise ApiError(ErrorCode.INVALID_REQUEST, problem)
