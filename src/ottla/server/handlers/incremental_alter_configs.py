"""IncrementalAlterConfigs (key 44): set, delete, append to and subtract from single settings."""

from __future__ import annotations

from collections import Counter

from ottla.cluster.commands.alter_configs import Alteration, Altered, IncrementalAlterConfigs, check_form
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource, ResourceType
from ottla.server import loggers
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Asked = tuple[Resource, tuple[Alteration, ...]]


@handles(IncrementalAlterConfigsRequest, on="both", forwarded=True)
def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    asked: list[Asked] = [
        (
            Resource(resource.resource_type, resource.resource_name),
            tuple(Alteration(each.name, each.config_operation, each.value) for each in resource.configs),
        )
        for resource in request.resources
    ]
    # Log levels belong to this process, everything else to the cluster; the answers keep the order of the questions.
    stored = tuple(item for item in asked if item[0].type != ResourceType.BROKER_LOGGER)
    outcomes = iter(_alter(stored, request.validate_only, context))
    times = Counter(resource for resource, _ in asked)
    answers = [
        next(outcomes)
        if resource.type != ResourceType.BROKER_LOGGER
        else _alter_loggers(resource, alterations, times[resource], request.validate_only, context)
        for resource, alterations in asked
    ]
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.text if error else None,
                resource_type=resource.type,
                resource_name=resource.name,
            )
            for resource, error in answers
        ]
    )


def _alter(asked: tuple[Asked, ...], validate_only: bool, context: Context) -> list[Altered]:
    try:
        outcomes: list[Altered] = context.metadata.submit(IncrementalAlterConfigs(asked, validate_only))
    except ApiError as error:
        return [Altered(resource, error) for resource, _ in asked]
    return outcomes


def _alter_loggers(
    resource: Resource, alterations: tuple[Alteration, ...], times: int, validate_only: bool, context: Context
) -> Altered:
    try:
        check_form(alterations, times)
        loggers.alter(context.node_id, resource.name, alterations, validate_only=validate_only)
    except ApiError as error:
        return Altered(resource, error)
    return Altered(resource, None)
