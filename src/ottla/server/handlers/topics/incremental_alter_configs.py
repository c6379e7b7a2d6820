"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cluster.commands.alter_configs import Altered, ConfigAlteration, IncrementalAlterConfigs
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.resources import Resource
from ottla.server.api.config_changes import Asked, alter
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.topics.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_Resource = IncrementalAlterConfigsRequest.AlterConfigsResource


@handles(
    IncrementalAlterConfigsRequest, on="both", portions=Portions("resources", "responses", limits.RESOURCES_PER_SLICE)
)
def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> Answer[IncrementalAlterConfigsResponse]:
    asked = [
        (
            Resource(resource.resource_type, resource.resource_name),
            tuple(ConfigAlteration(each.name, each.config_operation, each.value) for each in resource.configs),
        )
        for resource in request.resources
    ]
    only = request.validate_only
    return alter(
        asked,
        only,
        context,
        lambda rest: IncrementalAlterConfigs(tuple(rest), only),
        lambda rest: _request(rest, only),
        _response,
        log_levels=True,
    )


def _request(asked: Sequence[Asked], validate_only: bool) -> IncrementalAlterConfigsRequest:
    resources = [
        _Resource(
            resource_type=resource.type,
            resource_name=resource.name,
            configs=[
                _Resource.AlterableConfig(name=name, config_operation=op, value=value)
                for name, op, value in alterations
            ],
        )
        for resource, alterations in asked
    ]
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)


def _response(outcomes: list[Altered]) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.text if error else None,
                resource_type=resource.type,
                resource_name=resource.name,
            )
            for resource, error in outcomes
        ]
    )
