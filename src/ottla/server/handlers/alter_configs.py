"""AlterConfigs (key 33): a resource gets exactly these settings. Superseded by IncrementalAlterConfigs (KIP-339)."""

from __future__ import annotations

from ottla.cluster.commands.alter_configs import AlterConfigs, Altered
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


@handles(AlterConfigsRequest, on="both", forwarded=True)
def alter_configs(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    asked = tuple(
        (
            Resource(resource.resource_type, resource.resource_name),
            tuple((each.name, each.value) for each in resource.configs),
        )
        for resource in request.resources
    )
    try:
        outcomes: list[Altered] = context.metadata.submit(AlterConfigs(asked, request.validate_only))
    except ApiError as error:
        outcomes = [Altered(resource, error) for resource, _ in asked]
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
