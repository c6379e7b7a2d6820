"""The guard of AlterConfigs and IncrementalAlterConfigs, behind that of resources: rights on dead-letter topics."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias, TypeVar

from ottla.cluster.commands.alter_configs import Op
from ottla.model.errors import ErrorCode
from ottla.model.resources import Resource
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import merged
from ottla.server.api.guard.checks import decisions_of
from ottla.server.api.guard.letter_topics import refusal_of
from ottla.server.api.guard.refusal import Paths, blank, mirrored, struct_of
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.wire.message import Struct
from ottla.wire.messages.topics.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.wire.messages.topics.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Asked: TypeAlias = AlterConfigsRequest | IncrementalAlterConfigsRequest
Item: TypeAlias = AlterConfigsRequest.Resource | IncrementalAlterConfigsRequest.AlterConfigsResource
AskedT = TypeVar("AskedT", AlterConfigsRequest, IncrementalAlterConfigsRequest)
ResponseT = TypeVar("ResponseT", AlterConfigsResponse, IncrementalAlterConfigsResponse)

_PATHS = Paths.between("resources", "responses")


def guard(handler: Handler) -> Handler:
    def alter(
        request: Asked, context: Context
    ) -> Answer[AlterConfigsResponse] | Answer[IncrementalAlterConfigsResponse]:
        problems = [_problem(each, context) for each in request.resources]
        if not any(problems) or _asks_for_others(context):
            return handler(request, context)
        if isinstance(request, AlterConfigsRequest):
            return _answer(request, AlterConfigsResponse, problems, handler, context)
        return _answer(request, IncrementalAlterConfigsResponse, problems, handler, context)

    return alter


def _answer(
    request: AskedT, response: type[ResponseT], problems: list[str | None], handler: Handler, context: Context
) -> Answer[ResponseT]:
    """Have the handler alter what may be altered, and put the refusals in the places of their items."""
    version, items = context.request_version, request.resources
    some = copy.copy(request)
    some.resources = [each for each, problem in zip(items, problems, strict=True) if problem is None]
    answer = handler(some, context) if some.resources else blank(response, version, {})

    def refused(item: Item, problem: str) -> Struct:
        given = {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "error_message": problem}
        return mirrored((item,), _PATHS, struct_of(response, "responses"), version, given)[0]

    def merge(told: ResponseT) -> ResponseT:
        others = iter(told.responses)
        pairs = zip(items, problems, strict=True)
        responses: list[Any] = [next(others) if why is None else refused(item, why) for item, why in pairs]
        told.responses = responses
        return told

    return merged(answer, merge)


def _problem(item: Item, context: Context) -> str | None:
    """Return why the client may not change the settings of one resource so, or None."""
    resource = Resource(item.resource_type, item.resource_name)
    before = context.member.state.config(*resource)
    changes: dict[str, str | None]
    if isinstance(item, AlterConfigsRequest.Resource):
        changes = {**dict.fromkeys(before), **{each.name: each.value for each in item.configs}}
    else:
        changes = {each.name: None if each.config_operation == Op.DELETE else each.value for each in item.configs}
    return refusal_of(resource, changes, context, before)


def _asks_for_others(context: Context) -> bool:
    """Return whether a broker asks for what it has checked itself."""
    return context.connection.is_broker and decisions_of(context).allows_on_cluster(AclOperation.CLUSTER_ACTION)
