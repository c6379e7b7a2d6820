"""Configurations of topics, brokers and the other resources that have one.

Rules:
- Changes are incremental: settings that are not named keep their values. Values are text, as in Kafka's files.
- A broker's own configuration is read from and changed at that broker; any broker can handle other resources.
- Each resource has its own outcome.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeGuard, TypeVar

from ottla.client.checks import Setting, checked_names, checked_text, kind_of, setting_text
from ottla.client.cluster import Absent, Cluster
from ottla.client.errors import check
from ottla.client.outcomes import Outcomes, outcomes_of, told
from ottla.client.retried_parts import settle
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import ConfigSource, Resource, ResourceType, node_id_of
from ottla.model.setting import SettingKind
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from ottla.wire.messages.topics.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.topics.list_config_resources import ListConfigResourcesRequest

V = TypeVar("V")


class Operation(IntEnum):
    """What to do with the value of a setting; APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Synonym(NamedTuple):
    """One of the values that a setting takes its value from, or would fall back to."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting with its value and the source of that value."""

    name: str
    value: str | None
    source: ConfigSource
    type: SettingKind
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None
    synonyms: tuple[Synonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source == ConfigSource.DEFAULT


class Change(NamedTuple):
    """One change of one setting."""

    name: str
    value: str | None
    operation: Operation = Operation.SET


class ConfigAdmin:
    """Operations on configurations."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(
        self, resource: Resource, names: Iterable[str] | None = None, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """The settings of a resource (all, or the named ones), sorted by name."""
        return (await self.describe_each([resource], names, documentation=documentation)).all()[resource]

    async def describe_each(
        self, resources: Iterable[Resource], names: Iterable[str] | None = None, *, documentation: bool = False
    ) -> Outcomes[Resource, list[ConfigEntry]]:
        """Describe several resources, with an outcome per resource."""
        wanted = None if names is None else checked_names(names, "a setting")

        async def ask(node_id: int | None, owned: list[Resource]) -> Outcomes[Resource, list[ConfigEntry]]:
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsRequest.Resource(
                        resource_type=each.type, resource_name=each.name, configuration_keys=wanted
                    )
                    for each in owned
                ],
                include_synonyms=True,
                include_documentation=documentation,
            )
            answer = await self._cluster.call(request, node_id=node_id)
            return told(
                owned,
                [
                    (
                        Resource(each.resource_type, each.resource_name),
                        sorted(map(_entry, each.configs), key=lambda entry: entry.name),
                        each.error_code,
                        each.error_message,
                    )
                    for each in answer.results
                ],
            )

        async def attempt(left: list[Resource]) -> Outcomes[Resource, list[ConfigEntry]]:
            outcomes = await _ask_owners(left, ask)
            for resource, error in outcomes.failed.items():
                if self._is_absent(error, resource):
                    outcomes.failed[resource] = Absent(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error.message)
            return outcomes

        return await settle(self._cluster, resources, attempt)

    def _is_absent(self, error: Exception, resource: Resource) -> TypeGuard[ApiError]:
        """Return whether the error means a topic that does not exist and was not created a moment ago: a retry cannot
        help.
        """
        now_s = asyncio.get_running_loop().time()
        return (
            isinstance(error, ApiError)
            and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            and not self._cluster.metadata.is_new(resource.name, now_s)
        )

    async def alter(self, resource: Resource, changes: Iterable[Change], *, validate_only: bool = False) -> None:
        """Apply all of the changes or none."""
        (await self.alter_each({resource: changes}, validate_only=validate_only)).all()

    async def alter_each(
        self, changes: Mapping[Resource, Iterable[Change]], *, validate_only: bool = False
    ) -> Outcomes[Resource, None]:
        """Apply the changes of several resources; for each resource, all of its changes or none."""
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource

        async def ask(node_id: int | None, owned: list[Resource]) -> Outcomes[Resource, None]:
            request = IncrementalAlterConfigsRequest(
                resources=[
                    kind(
                        resource_type=resource.type,
                        resource_name=resource.name,
                        configs=[
                            kind.AlterableConfig(
                                name=each.name,
                                config_operation=each.operation,
                                value=setting_text(each.name, each.value),
                            )
                            for each in changes[resource]
                        ],
                    )
                    for resource in owned
                ],
                validate_only=validate_only,
            )
            answer = await self._cluster.call(request, node_id=node_id, repeatable=False)
            return told(
                owned,
                [
                    (Resource(each.resource_type, each.resource_name), None, each.error_code, each.error_message)
                    for each in answer.responses
                ],
            )

        return await _ask_owners(changes, ask)

    async def set(self, resource: Resource, values: Mapping[str, Setting]) -> None:
        """Set values; None resets a setting to its default."""
        if not isinstance(values, Mapping):
            raise TypeError(f"a mapping of settings to values is needed, not {kind_of(values)}")
        await self.alter(
            resource,
            [
                Change(name, setting_text(name, value), Operation.DELETE if value is None else Operation.SET)
                for name, value in values.items()
            ],
        )

    async def resources(self, types: Iterable[ResourceType] = ()) -> list[Resource]:
        """Return the resources that have a configuration of their own, of the given types (default: of all types)."""
        request = ListConfigResourcesRequest(resource_types=[int(each) for each in types])
        answer = await self._cluster.call(request, error_of=lambda each: each.error_code)
        check(answer.error_code)
        found = [Resource(_kind(each.resource_type), each.resource_name) for each in answer.config_resources]
        return sorted(found)


async def _ask_owners(
    resources: Iterable[Resource], ask: Callable[[int | None, list[Resource]], Awaitable[Outcomes[Resource, V]]]
) -> Outcomes[Resource, V]:
    """Ask each broker about its own configuration and any broker (None) about the other resources, all in parallel."""
    by_node: dict[int | None, list[Resource]] = {}
    for each in resources:
        _check_resource(each)
        by_node.setdefault(_node_of(each), []).append(each)
    answers = await outcomes_of({node_id: ask(node_id, owned) for node_id, owned in by_node.items()})
    outcomes: Outcomes[Resource, V] = Outcomes()
    for answered in answers.found.values():
        outcomes.add(answered)
    for node_id, error in answers.failed.items():
        outcomes.failed.update(dict.fromkeys(by_node[node_id], error))
    return outcomes


def _check_resource(resource: object) -> None:
    if isinstance(resource, tuple) and len(resource) == 2:
        kind, name = resource
        if isinstance(kind, int) and isinstance(name, str):
            checked_text(name, "the name of a resource")
            return
    raise TypeError(f'a resource is Resource.topic("orders"), or another Resource(...), not {resource!r}')


def _node_of(resource: Resource) -> int | None:
    if resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name:
        node_id = node_id_of(resource.name)
        if node_id is None:
            raise ValueError(f"the name of a broker as a resource is its id, not {resource.name!r}")
        return node_id
    return None


def _kind(number: int) -> ResourceType:
    return ResourceType(number) if number in ResourceType._value2member_map_ else ResourceType.UNKNOWN


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if number in ConfigSource._value2member_map_ else ConfigSource.UNKNOWN


def _entry(entry: DescribeConfigsResponse.Result.ResourceResult) -> ConfigEntry:
    kind = entry.config_type if entry.config_type in SettingKind._value2member_map_ else 0
    return ConfigEntry(
        name=entry.name,
        value=entry.value,
        source=_source(entry.config_source),
        type=SettingKind(kind),
        is_read_only=entry.read_only,
        is_sensitive=entry.is_sensitive,
        documentation=entry.documentation,
        synonyms=tuple(Synonym(each.name, each.value, _source(each.source)) for each in entry.synonyms),
    )
