"""Configurations of topics, brokers and the other things that have one.

Rules:
- Changes are incremental: what is not named stays. Values are text, as in Kafka's files.
- A broker's own configuration is asked of that broker; everything else of any broker.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.model.errors import ErrorCode
from ottla.model.resources import Resource, ResourceType, Source
from ottla.model.setting import Kind
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse


class Operation(IntEnum):
    """What to do with a value; APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Synonym(NamedTuple):
    """A value that this one is taken from or would fall back to."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting with its value and where that comes from."""

    name: str
    value: str | None
    source: Source
    type: Kind
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None
    synonyms: tuple[Synonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source == Source.DEFAULT


class Change(NamedTuple):
    """One change of one setting."""

    name: str
    value: str | None
    operation: Operation = Operation.SET


class Configs:
    """What can be done with configurations."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(
        self, resource: Resource, names: Iterable[str] | None = None, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """The settings of a resource (all, or the named ones), sorted by name."""
        (found,) = (await self.describe_many([resource], names, documentation=documentation)).values()
        return found

    async def describe_many(
        self, resources: Sequence[Resource], names: Iterable[str] | None = None, *, documentation: bool = False
    ) -> dict[Resource, list[ConfigEntry]]:
        """The same for several resources in one request; they must be one broker's own, or nobody's."""
        wanted = None if names is None else list(names)
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.Resource(
                    resource_type=each.type, resource_name=each.name, configuration_keys=wanted
                )
                for each in resources
            ],
            include_synonyms=True,
            include_documentation=documentation,
        )
        answer = await self._cluster.call(
            request,
            DescribeConfigsResponse,
            node_id=_node_of(resources[0]) if resources else None,
            error_of=self._passing_error,
        )
        result: dict[Resource, list[ConfigEntry]] = {}
        for found in answer.results:
            check(found.error_code, found.error_message)
            resource = Resource(found.resource_type, found.resource_name)
            result[resource] = sorted((_entry(each) for each in found.configs), key=lambda entry: entry.name)
        return result

    def _passing_error(self, answer: DescribeConfigsResponse) -> int:
        """The first error that may go away; a topic that nobody just made will not come."""
        now_s = asyncio.get_running_loop().time()
        for found in answer.results:
            is_absent = found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if found.error_code and not (is_absent and not self._cluster.metadata.is_new(found.resource_name, now_s)):
                return found.error_code
        return ErrorCode.NONE

    async def alter(self, resource: Resource, changes: Iterable[Change], *, validate_only: bool = False) -> None:
        """Apply the changes, all or none."""
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        request = IncrementalAlterConfigsRequest(
            resources=[
                kind(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        kind.AlterableConfig(name=each.name, config_operation=each.operation, value=each.value)
                        for each in changes
                    ],
                )
            ],
            validate_only=validate_only,
        )
        answer = await self._cluster.call(
            request, IncrementalAlterConfigsResponse, node_id=_node_of(resource), repeatable=False
        )
        for each in answer.responses:
            check(each.error_code, each.error_message)

    async def set(self, resource: Resource, values: Mapping[str, str | None]) -> None:
        """Set values; None takes the setting back to its default."""
        await self.alter(
            resource,
            [
                Change(name, value, Operation.DELETE if value is None else Operation.SET)
                for name, value in values.items()
            ],
        )

    async def resources(self, types: Iterable[ResourceType] = ()) -> list[Resource]:
        """The resources that have a configuration of their own (all types unless told)."""
        request = ListConfigResourcesRequest(resource_types=[int(each) for each in types])
        answer = await self._cluster.call(request, ListConfigResourcesResponse, error_of=lambda each: each.error_code)
        check(answer.error_code)
        found = [Resource(_kind(each.resource_type), each.resource_name) for each in answer.config_resources]
        return sorted(found)


def _node_of(resource: Resource) -> int | None:
    if resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name:
        return int(resource.name)
    return None


def _kind(number: int) -> ResourceType:
    return ResourceType(number) if number in ResourceType._value2member_map_ else ResourceType.UNKNOWN


def _source(number: int) -> Source:
    return Source(number) if number in Source._value2member_map_ else Source.UNKNOWN


def _entry(entry: DescribeConfigsResponse.Result.ResourceResult) -> ConfigEntry:
    kind = entry.config_type if entry.config_type in Kind._value2member_map_ else 0
    return ConfigEntry(
        name=entry.name,
        value=entry.value,
        source=_source(entry.config_source),
        type=Kind(kind),
        is_read_only=entry.read_only,
        is_sensitive=entry.is_sensitive,
        documentation=entry.documentation,
        synonyms=tuple(Synonym(each.name, each.value, _source(each.source)) for each in entry.synonyms),
    )
