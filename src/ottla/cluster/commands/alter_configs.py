"""AlterConfigs, incremental and as a whole: each resource succeeds or fails by itself.

As in Kafka, errors that a broker can detect alone (the form of the request, settings that cannot change while it runs)
are INVALID_REQUEST; wrong values, which the controller detects, are mostly INVALID_CONFIG. Log levels (BROKER_LOGGER)
are not part of the cluster's state and are handled before a command is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.cluster import features
from ottla.cluster.commands.elect_leaders import elect_unclean
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.features import ELR_VERSION, METADATA_VERSION_NAMES
from ottla.cluster.snapshot import config_entry
from ottla.cluster.tenant_rules import check_dead_letters, check_new_tenants
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result, Timer
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config_checks import (
    check_broker_change,
    check_group_config,
    check_topic_config,
)
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import CONFIG_RESOURCES_PER_REQUEST_MAX, CONFIG_VALUE_BYTES_MAX, UNCLEAN_ELECTION_DELAY_MS
from ottla.model.names import check_topic_name
from ottla.model.resources import Resource, ResourceType, node_id_of
from ottla.model.setting import Setting, SettingKind
from ottla.model.settings.log import CORDONED_LOG_DIRS
from ottla.model.settings.replication import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE
from ottla.model.tenancy.topic_policy import TopicPolicy
from ottla.model.topic_settings import TOPIC_SETTINGS
from ottla.wire.journal import cluster_metadata as journal

_MIN_ISR = MIN_INSYNC_REPLICAS.name
_UNCLEAN = UNCLEAN_LEADER_ELECTION_ENABLE.name
_CORDONED = CORDONED_LOG_DIRS.name
# APPEND and SUBTRACT work on lists of these resource types; settings of other types can only be replaced.
_SPLITTABLE: dict[int, Mapping[str, Setting[Any]]] = {
    ResourceType.TOPIC: TOPIC_SETTINGS,
    ResourceType.BROKER: BROKER_SETTINGS,
}


class Op(IntEnum):
    """What to do with one setting: the operations of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigAlteration(NamedTuple):
    """A change of one setting; `op` is as the client sent it and may be no valid Op."""

    name: str
    op: int
    value: str | None


class Altered(NamedTuple):
    """The result for one resource."""

    resource: Resource
    error: ApiError | None


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigs:
    """Replies with an Altered for each resource, in order."""

    resources: tuple[tuple[Resource, tuple[ConfigAlteration, ...]], ...]
    validate_only: bool = False

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, list[Altered]]:
        return _decide(view, self.resources, self.validate_only, now_ms, replace=False)


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """The older form: every alteration sets a value, and settings that are not listed go back to their defaults.
    Replies as IncrementalAlterConfigs does.
    """

    resources: tuple[tuple[Resource, tuple[ConfigAlteration, ...]], ...]
    validate_only: bool = False

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, list[Altered]]:
        return _decide(view, self.resources, self.validate_only, now_ms, replace=True)


def _decide(
    view: MetadataView,
    asked: Sequence[tuple[Resource, tuple[ConfigAlteration, ...]]],
    validate_only: bool,
    now_ms: int,
    *,
    replace: bool,
) -> Result[MetadataEntry, list[Altered]]:
    if len(asked) > CONFIG_RESOURCES_PER_REQUEST_MAX:
        raise ApiError(ErrorCode.POLICY_VIOLATION, "Excessively large number of resources per request.")
    records: list[MetadataEntry] = []
    outcomes: list[Altered] = []
    times = Counter(resource for resource, _ in asked)
    for resource, alterations in asked:
        current = view.state.config(*resource)
        try:
            check_form(alterations, times[resource])
            changes = {each.name: _new_value(resource.type, each, current) for each in alterations}
            if replace:
                changes |= {name: None for name in current if name not in changes}
            _check_values(view, resource, changes)
        except ApiError as error:
            outcomes.append(Altered(resource, error))
            continue
        records += _records(resource, current, changes)
        outcomes.append(Altered(resource, None))
    if validate_only:
        return Result([], outcomes)
    return Result([*records, *_forgotten_elrs(view, records)], outcomes, timers=_elections(records, now_ms))


def _elections(records: Sequence[MetadataEntry], now_ms: int) -> list[Timer]:
    """If unclean elections were just allowed, return a timer that holds one now instead of at the next interval."""
    allowing = [entry.record for entry in records if entry.record.name == _UNCLEAN and entry.record.value != "false"]
    if not allowing:
        return []
    # A setting of brokers takes effect on this node only some time after the commit.
    of_topics = all(record.resource_type == ResourceType.TOPIC for record in allowing)
    return [elect_unclean(now_ms + (0 if of_topics else UNCLEAN_ELECTION_DELAY_MS))]


def _forgotten_elrs(view: MetadataView, records: Sequence[MetadataEntry]) -> Iterator[MetadataEntry]:
    """Clear the ELR when min.insync.replicas changes: it was decided by the old value (KIP-966)."""
    if view.state.features.get(ELR_VERSION, 0) == 0:
        return
    for config in (entry.record for entry in records):
        if config.name == _MIN_ISR:
            name = config.resource_name if config.resource_type == ResourceType.TOPIC else ""  # empty: all topics
            yield MetadataEntry(journal.ClearElrRecord(topic_name=name))


def check_form(alterations: tuple[ConfigAlteration, ...], times: int) -> None:
    """Refuse a resource that is named twice, or a malformed list of changes."""
    if times > 1:
        raise _request("Each resource must appear at most once.")
    if len({alteration.name for alteration in alterations}) < len(alterations):
        raise _request("Error due to duplicate config keys")
    missing = [name for name, op, value in alterations if op != Op.DELETE and value is None]
    if missing:
        raise _request(f"Null value not supported for : {', '.join(missing)}")
    long = [name for name, _, value in alterations if value and len(value) > CONFIG_VALUE_BYTES_MAX]
    if long:
        raise _request(f"The value is too long for : {', '.join(long)}")


def _new_value(type: int, alteration: ConfigAlteration, current: Mapping[str, str]) -> str | None:
    """Return the new text of a setting; None to remove it."""
    name, op, text = alteration
    if op == Op.SET:
        return text
    if op == Op.DELETE:
        return None
    if op not in (Op.APPEND, Op.SUBTRACT):
        raise _request(f"Unknown operations type {op}")
    setting = _SPLITTABLE.get(type, {}).get(name)
    if setting is None or setting.kind is not SettingKind.LIST:
        raise _config(f"Can't {Op(op).name} to key {name} because its type is not LIST.")
    before = current[name] if name in current else setting.render(setting.default)
    parts = [part for part in (before or "").split(",") if part]
    for part in (text or "").split(","):
        if op == Op.APPEND and part not in parts:
            parts.append(part)
        elif op == Op.SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _check_values(view: MetadataView, resource: Resource, changes: Mapping[str, str | None]) -> None:
    """Refuse values that the resource may not have."""
    new = {name: text for name, text in {**view.state.config(*resource), **changes}.items() if text is not None}
    if resource.type == ResourceType.TOPIC:
        if not resource.name:
            raise _request("Default topic resources are not allowed.")
        check_topic_name(resource.name)
        check_topic_config(view.config(), new, view.state.config(*resource))
        TopicPolicy(view.config()).check_settings(resource.name, view.config().topic(new))
        if resource.name not in view.state.topics:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist.")
    elif resource.type == ResourceType.BROKER:
        _check_broker(view, resource.name, changes)
    elif resource.type == ResourceType.GROUP:
        if not resource.name:
            raise _request("Default group resources are not allowed.")
        check_group_config(view.config(), new)
    elif resource.type == ResourceType.CLIENT_METRICS:
        from ottla.telemetry.subscription import check_subscription  # few clusters have one

        check_subscription(resource.name, new)
    else:
        raise _request(f"Unknown resource type {resource.type}")
    check_dead_letters(view, resource, changes)


def _check_broker(view: MetadataView, name: str, changes: Mapping[str, str | None]) -> None:
    if name:
        id = node_id_of(name)
        if id is None:
            raise _request(f"Invalid broker name {name}")
        if id not in view.state.brokers and id not in view.state.controllers:
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {id} found.")
    check_broker_change({key: text for key, text in changes.items() if text is not None}, per_broker=bool(name))
    if not name:
        check_new_tenants(view, changes)
    if _CORDONED in changes and view.state.metadata_version < features.CORDONED:
        level = METADATA_VERSION_NAMES[features.CORDONED]
        raise _config(
            f"The {_CORDONED} configuration value cannot be set because it requires metadata.version >= {level}"
        )
    if _MIN_ISR in changes and view.state.features.get(ELR_VERSION, 0) > 0:
        # KIP-966: the controller elects by min.insync.replicas, so the whole cluster must have a single value.
        if name:
            raise _config(f"Broker-level {_MIN_ISR} cannot be altered while ELR is enabled.")
        if changes[_MIN_ISR] is None:
            raise _config(f"Cluster-level {_MIN_ISR} cannot be removed while ELR is enabled.")


def _records(resource: Resource, current: Mapping[str, str], changes: Mapping[str, str | None]) -> list[MetadataEntry]:
    # A broker's record is written even if nothing changes: it makes the broker reload key stores and the like.
    return [
        config_entry(resource, name, text)
        for name, text in changes.items()
        if text != current.get(name) or resource.type == ResourceType.BROKER
    ]


def _request(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _config(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, message)
