"""Changes of settings: decided partly by this broker, partly by the active controller, here or on another node.

Log levels belong to the process that was asked, and the settings of one broker have to be sent to that broker: so these
requests are not forwarded as a whole. This broker decides its own part and sends the rest to the controller; the
answers keep the order of the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ottla.client.errors import ClientError, error_code
from ottla.cluster.commands.alter_configs import Altered, ConfigAlteration, check_form
from ottla.cluster.machine import ClusterCommand
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource, ResourceType, node_id_of
from ottla.server.api.context import Context
from ottla.server.loop.later import Answer, Later
from ottla.server.quorum.controller_link import controller_timed_out
from ottla.server.quorum.not_controller import NotController
from ottla.server.settings import log_levels as loggers
from ottla.wire.message import Request

Asked = tuple[Resource, tuple[ConfigAlteration, ...]]
ResponseT = TypeVar("ResponseT")


def alter(
    asked: Sequence[Asked],
    validate_only: bool,
    context: Context,
    command_of: Callable[[Sequence[Asked]], ClusterCommand],
    request_of: Callable[[Sequence[Asked]], Request],
    respond: Callable[[list[Altered]], ResponseT],
    *,
    log_levels: bool,
) -> Answer[ResponseT]:
    """Make the changes; `command_of` and `request_of` build the controller's command or request for a part of them.

    `log_levels` says whether this kind of request may set log levels.
    """
    times = Counter(resource for resource, _ in asked)
    judged = [
        _alter_levels(item, times[item[0]], validate_only, context)
        if log_levels and item[0].type == ResourceType.BROKER_LOGGER
        else _refuse(item, times[item[0]], context)
        for item in asked
    ]
    rest = [item for item, outcome in zip(asked, judged, strict=True) if outcome is None]

    def complete(decided: list[Altered]) -> ResponseT:
        waiting = iter(decided)
        return respond([outcome or next(waiting) for outcome in judged])

    if not rest:
        return complete([])
    elsewhere = not context.connection.controller
    if elsewhere and not context.member.controller.active:
        return _ask(context, request_of(rest), rest, complete)
    reply = context.member.controller.submit(command_of(rest))
    if reply.done:
        return complete(_outcomes(reply.taken(), rest))
    if not elsewhere:
        return reply.map(lambda value: complete(_outcomes(value, rest)))
    return _unless_lost(reply, context, request_of(rest), rest, complete)


def _alter_levels(item: Asked, times: int, validate_only: bool, context: Context) -> Altered:
    resource, alterations = item
    try:
        check_form(alterations, times)
        loggers.alter(context.node_id, resource.name, alterations, validate_only=validate_only)
    except ApiError as error:
        return Altered(resource, error)
    return Altered(resource, None)


def _refuse(item: Asked, times: int, context: Context) -> Altered | None:
    """Return the refusal if this node can refuse the item without the controller."""
    resource, alterations = item
    if resource.type != ResourceType.BROKER or not resource.name or context.connection.controller:
        return None
    try:
        check_form(alterations, times)
        _check_broker(resource.name, context.node_id)
    except ApiError as error:
        return Altered(resource, error)
    return None


def _check_broker(name: str, node_id: int) -> None:
    id = node_id_of(name)
    if id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if id != node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id}, but received {name}")


async def _unless_lost(
    reply: Later[Any], context: Context, request: Request, rest: list[Asked], complete: Callable[[list[Altered]], Any]
) -> Any:
    value = await reply
    if isinstance(value, NotController):
        return await _ask(context, request, rest, complete)
    return complete(_outcomes(value, rest))


async def _ask(context: Context, request: Request, rest: list[Asked], complete: Callable[[list[Altered]], Any]) -> Any:
    """Return the outcomes that the active controller decided, or timeouts if none answered in time."""
    try:
        answer = await context.member.link.ask(request, errors=_errors)
    except ClientError:
        return complete(_outcomes(controller_timed_out(), rest))
    return complete([_altered(each) for each in answer.responses])


def _errors(answer: Any) -> Iterable[int]:
    return (each.error_code for each in answer.responses)


def _altered(answer: Any) -> Altered:
    error = ApiError(error_code(answer.error_code), answer.error_message) if answer.error_code else None
    return Altered(Resource(answer.resource_type, answer.resource_name), error)


def _outcomes(value: Any, rest: list[Asked]) -> list[Altered]:
    if isinstance(value, ApiError):
        return [Altered(resource, value) for resource, _ in rest]
    outcomes: list[Altered] = value
    return outcomes
