"""ListConfigResources (key 74): list the resources that can have a configuration.

v0 client metrics only   v1 all types, or those asked for
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.resources import ResourceType
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.wire.messages.topics.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

_ALL = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)
_FIRST_WITH_TYPES = ListConfigResourcesRequest.since("resource_types")


@handles(ListConfigResourcesRequest, needs=Needs((on_cluster(AclOperation.DESCRIBE_CONFIGS),)))
def list_config_resources(request: ListConfigResourcesRequest, context: Context) -> ListConfigResourcesResponse:
    if context.request_version < _FIRST_WITH_TYPES:
        wanted: tuple[int, ...] = (ResourceType.CLIENT_METRICS,)
    else:
        wanted = tuple(dict.fromkeys(request.resource_types)) or _ALL
    if any(type not in _ALL for type in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[])
    return ListConfigResourcesResponse(
        error_code=ErrorCode.NONE,
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=type)
            for type in wanted
            for name in _names(type, context)
        ],
    )


def _names(type: int, context: Context) -> list[str]:
    state = context.member.state
    if type == ResourceType.TOPIC:
        return list(state.topics)
    if type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(id) for id in state.brokers]
    return [resource.name for resource in state.configs if resource.type == type]
