"""AlterConfigs (key 33): replace all settings of a resource. Superseded by IncrementalAlterConfigs (KIP-339)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cluster.commands.alter_configs import AlterConfigs, Altered, ConfigAlteration, Op
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.resources import Resource
from ottla.server.api.config_changes import Asked, alter
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.topics.alter_configs import AlterConfigsRequest, AlterConfigsResponse

_Resource = AlterConfigsRequest.Resource


@handles(AlterConfigsRequest, on="both", portions=Portions("resources", "responses", limits.RESOURCES_PER_SLICE))
def alter_configs(request: AlterConfigsRequest, context: Context) -> Answer[AlterConfigsResponse]:
    asked = [
        (
            Resource(resource.resource_type, resource.resource_name),
            tuple(ConfigAlteration(each.name, Op.SET, each.value) for each in resource.configs),
        )
        for resource in request.resources
    ]
    only = request.validate_only
    return alter(
        asked,
        only,
        context,
        lambda rest: _command(rest, only),
        lambda rest: _request(rest, only),
        _response,
        log_levels=False,
    )


def _command(asked: Sequence[Asked], validate_only: bool) -> AlterConfigs:
    resources = tuple(
        (resource, tuple((name, value) for name, _, value in alterations)) for resource, alterations in asked
    )
    return AlterConfigs(resources, validate_only)


def _request(asked: Sequence[Asked], validate_only: bool) -> AlterConfigsRequest:
    resources = [
        _Resource(
            resource_type=resource.type,
            resource_name=resource.name,
            configs=[_Resource.AlterableConfig(name=name, value=value) for name, _, value in alterations],
        )
        for resource, alterations in asked
    ]
    return AlterConfigsRequest(resources=resources, validate_only=validate_only)


def _response(outcomes: list[Altered]) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResponse.ResourceResponse(
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.text if error else None,
                resource_type=resource.type,
                resource_name=resource.name,
            )
            for resource, error in outcomes
        ]
    )
