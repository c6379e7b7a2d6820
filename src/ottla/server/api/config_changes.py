"""Changes of settings: decided partly by this broker, partly by the active controller, here or on another node.

Log levels belong to the process that was asked, and the settings of one broker have to be sent to that broker: so these
requests are not forwarded as a whole. This broker decides its own part and sends the rest to the controller, in an
Envelope with the principal of the client, as Kafka's brokers do; the answers keep the order of the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from ottla.client.errors import ClientError, error_code
from ottla.cluster.commands.alter_configs import Altered, ConfigAlteration, check_form
from ottla.cluster.machine import ClusterCommand
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource, ResourceType, node_id_of
from ottla.security.acls import AclOperation
from ottla.server.api.changes.names import word
from ottla.server.api.context import Context
from ottla.server.api.needs import LETTER_TOPICS, Needs, configs_of, on_cluster
from ottla.server.api.security.own_listeners import check_listeners, concerns_listeners
from ottla.server.api.turns import hold_while
from ottla.server.loop.later import Answer, Later
from ottla.server.quorum.controller_link import controller_timed_out
from ottla.server.quorum.not_controller import NotController
from ottla.server.settings import log_levels
from ottla.wire.message import Request
from ottla.wire.messages.topics.alter_configs import AlterConfigsResponse
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsResponse

Asked = tuple[Resource, tuple[ConfigAlteration, ...]]
# Both kinds of requests for changes have responses of the same form.
ResourceAnswer = AlterConfigsResponse.ResourceResponse | IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
ResponseT = TypeVar("ResponseT", AlterConfigsResponse, IncrementalAlterConfigsResponse)
ConfigT = TypeVar("ConfigT")
ConfigT_co = TypeVar("ConfigT_co", covariant=True)


def config_changes(*, loggers: bool) -> Needs:
    """Return the rights that changes need; `loggers`: whether the request may be about log levels."""
    items = configs_of(AclOperation.ALTER_CONFIGS, "resources", "responses", loggers=loggers)
    return Needs(
        items=items._replace(order="place", of_brokers=on_cluster(AclOperation.CLUSTER_ACTION)),
        guard="alter_configs",
        asks=LETTER_TOPICS,
        changes=_named,
    )


class AlteredConfig(Protocol):
    @property
    def name(self) -> str: ...


def _named(request: ChangesRequest[AlteredConfig]) -> Iterator[str]:
    for each in request.resources:
        settings = ", ".join(config.name for config in each.configs)
        yield f"{word(ResourceType, each.resource_type)} {each.resource_name or '(default)'}: {settings}"


class AlteredResource(Protocol[ConfigT_co]):
    """A resource in a request, with the settings to change."""

    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...

    @property
    def configs(self) -> Sequence[ConfigT_co]: ...


class ChangesRequest(Protocol[ConfigT_co]):
    @property
    def resources(self) -> Sequence[AlteredResource[ConfigT_co]]: ...

    @property
    def validate_only(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class ChangesForm(Generic[ConfigT, ResponseT]):
    """The classes of one kind of request for changes, and what such a request may do."""

    request: Callable[..., Request[ResponseT]]  # takes `resources` and `validate_only`
    resource: Callable[..., AlteredResource[ConfigT]]
    config: Callable[[ConfigAlteration], ConfigT]
    alteration: Callable[[ConfigT], ConfigAlteration]  # the inverse of `config`
    response: Callable[..., ResponseT]  # takes `responses`
    outcome: Callable[..., ResourceAnswer]
    command: Callable[[tuple[Asked, ...], bool], ClusterCommand[list[Altered]]]
    sets_log_levels: bool
    replaces: bool  # whether settings that are not named go back to their defaults

    def asked(self, request: ChangesRequest[ConfigT]) -> list[Asked]:
        return [
            (Resource(each.resource_type, each.resource_name), tuple(map(self.alteration, each.configs)))
            for each in request.resources
        ]

    def request_for(self, asked: Iterable[Asked], validate_only: bool) -> Request[ResponseT]:
        """Return the request to the active controller for a part of the changes."""
        resources = [
            self.resource(
                resource_type=resource.type, resource_name=resource.name, configs=list(map(self.config, alterations))
            )
            for resource, alterations in asked
        ]
        return self.request(resources=resources, validate_only=validate_only)

    def respond(self, outcomes: Iterable[Altered]) -> ResponseT:
        return self.response(
            responses=[
                self.outcome(
                    error_code=error.code if error else ErrorCode.NONE,
                    error_message=error.text if error else None,
                    resource_type=resource.type,
                    resource_name=resource.name,
                )
                for resource, error in outcomes
            ]
        )


def alter(
    request: ChangesRequest[ConfigT], context: Context, form: ChangesForm[ConfigT, ResponseT]
) -> Answer[ResponseT]:
    """Make the changes that a client asks for."""
    asked, validate_only = form.asked(request), request.validate_only
    times = Counter(resource for resource, _ in asked)
    judged = [
        _alter_levels(item, times[item[0]], validate_only, context)
        if form.sets_log_levels and item[0].type == ResourceType.BROKER_LOGGER
        else _refuse(item, times[item[0]], context)
        for item in asked
    ]
    looked_at = [
        place
        for place, (resource, alterations) in enumerate(asked)
        if judged[place] is None
        and _is_own(resource, context)
        and concerns_listeners(context, alterations, replaces=form.replaces)
    ]
    if looked_at:
        return hold_while(context, _alter_after_look(asked, judged, looked_at, validate_only, context, form))
    return _alter_rest(asked, judged, validate_only, context, form)


async def _alter_after_look(
    asked: Sequence[Asked],
    judged: list[Altered | None],
    looked_at: Sequence[int],
    validate_only: bool,
    context: Context,
    form: ChangesForm[ConfigT, ResponseT],
) -> ResponseT:
    """Make the changes whose places are not `looked_at`, and of those the ones that the node can have."""
    for place in looked_at:
        resource, alterations = asked[place]
        try:
            await check_listeners(context, alterations, replaces=form.replaces)
        except ApiError as error:
            judged[place] = Altered(resource, error)
    answer = _alter_rest(asked, judged, validate_only, context, form)
    return await answer if isinstance(answer, Awaitable) else answer


def _alter_rest(
    asked: Sequence[Asked],
    judged: Sequence[Altered | None],
    validate_only: bool,
    context: Context,
    form: ChangesForm[ConfigT, ResponseT],
) -> ResponseT | Awaitable[ResponseT]:
    """Have the active controller make the changes that this node has not judged, and return the response to all."""
    rest = tuple(item for item, outcome in zip(asked, judged, strict=True) if outcome is None)
    complete = partial(_complete, form, judged)
    if not rest:
        return complete([])
    ask = partial(_ask, context, form, rest, validate_only, complete)
    controller, may_ask_another = context.member.controller, not context.connection.controller
    if may_ask_another and not controller.active:
        return hold_while(context, ask())
    reply = controller.submit(form.command(rest, validate_only))
    if not may_ask_another:
        return reply.map(lambda value: complete(_outcomes(value, rest)))
    if not reply.done:
        return hold_while(context, _unless_lost(reply, ask, rest, complete))
    value = reply.taken()
    if isinstance(value, NotController):  # this node has just lost that role
        return hold_while(context, ask())
    return complete(_outcomes(value, rest))


def _complete(
    form: ChangesForm[ConfigT, ResponseT], judged: Sequence[Altered | None], decided: Iterable[Altered]
) -> ResponseT:
    """Return the response with the outcomes of this node and those of the controller, in the order of the request."""
    waiting = iter(decided)
    return form.respond(outcome or next(waiting) for outcome in judged)


def _is_own(resource: Resource, context: Context) -> bool:
    """Return whether a client, not a broker, changes the settings of one broker: it has to be this one."""
    return resource.type == ResourceType.BROKER and bool(resource.name) and not context.connection.controller


def _alter_levels(item: Asked, times: int, validate_only: bool, context: Context) -> Altered:
    resource, alterations = item
    try:
        check_form(alterations, times)
        log_levels.alter(context.node_id, resource.name, alterations, validate_only=validate_only)
    except ApiError as error:
        return Altered(resource, error)
    return Altered(resource, None)


def _refuse(item: Asked, times: int, context: Context) -> Altered | None:
    """Return the refusal if this node can refuse the item without the controller."""
    resource, alterations = item
    if not _is_own(resource, context):
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
    reply: Later[list[Altered] | ApiError],
    ask: Callable[[], Awaitable[ResponseT]],
    rest: Sequence[Asked],
    complete: Callable[[list[Altered]], ResponseT],
) -> ResponseT:
    value = await reply
    if isinstance(value, NotController):
        return await ask()
    return complete(_outcomes(value, rest))


async def _ask(
    context: Context,
    form: ChangesForm[ConfigT, ResponseT],
    rest: Sequence[Asked],
    validate_only: bool,
    complete: Callable[[list[Altered]], ResponseT],
) -> ResponseT:
    """Return the outcomes that the active controller decided, or timeouts if none answered in time."""
    from ottla.server.api.security.sealed_requests import sealed  # only here: a node alone never needs it

    request = form.request_for(rest, validate_only)
    try:
        answer = await context.member.link.ask(request, errors=_errors, send=sealed(request, context, _errors))
    except ClientError:
        return complete(_outcomes(controller_timed_out(), rest))
    return complete([_altered(each) for each in answer.responses])


def _errors(answer: AlterConfigsResponse | IncrementalAlterConfigsResponse) -> Iterable[int]:
    return (each.error_code for each in answer.responses)


def _altered(answer: ResourceAnswer) -> Altered:
    error = ApiError(error_code(answer.error_code), answer.error_message) if answer.error_code else None
    return Altered(Resource(answer.resource_type, answer.resource_name), error)


def _outcomes(value: list[Altered] | ApiError, rest: Sequence[Asked]) -> list[Altered]:
    return [Altered(resource, value) for resource, _ in rest] if isinstance(value, ApiError) else value
