"""Visibility: what a client may not describe is taken out of the responses it gets.

Responses may have very many elements, so they are reviewed in slices.
"""

from __future__ import annotations

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.server.api.authorized_operations import NOT_ASKED, operations_of
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import Steps, kept, reviewed
from ottla.server.api.guard.checks import decisions_of, sees, values
from ottla.server.api.guard.refusal import blank
from ottla.server.api.needs import Hidden, Needs, Operations, Seen
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.server.loop.slices import Tally
from ottla.wire.message import Request, Response, Struct

# The fields of responses that describe groups.
_GROUPS, _GROUP_ID = "groups", "group_id"


def visible(needs: Needs, handler: Handler) -> Handler:
    """Return the handler with responses that have only what the client may see."""

    def handle(request: Request[Response], context: Context) -> Answer[Response]:
        decisions, version = decisions_of(context), context.request_version
        return reviewed(
            handler(request, context),
            lambda response: _review(response, needs, decisions, version),
            context.runtime.slices,
        )

    return handle


def _review(response: Response, needs: Needs, decisions: Decisions, version: int) -> Steps[Response]:
    tally = Tally(limits.DECISIONS_PER_SLICE)
    for seen in needs.sees:
        if seen.unless is None or not decisions.suffices_on_cluster(seen.unless.operation):
            yield from _filter(response, seen, seen.of.split("."), decisions, tally)
    if needs.hides is not None:
        yield from _hide(response, needs.hides, decisions, version, tally)
    for each in needs.operations:
        yield from _tell_operations(response, each, decisions, tally)
    return response


def _filter(within: Struct, seen: Seen, path: list[str], decisions: Decisions, tally: Tally) -> Steps[None]:
    found = getattr(within, path[0])
    if len(path) > 1:
        for each in found:
            yield from _filter(each, seen, path[1:], decisions, tally)
        return
    operation, resource, field = seen.right.operation, seen.right.resource, seen.right.field
    stay = yield from kept(found, lambda each: decisions.allows_now(operation, resource, getattr(each, field)), tally)
    setattr(within, path[0], stay)


def _hide(response: Response, hidden: Hidden, decisions: Decisions, version: int, tally: Tally) -> Steps[None]:
    paths = [path.split(".") for path in hidden.topics]
    groups: list[Struct] = getattr(response, _GROUPS)
    for position, group in enumerate(groups):
        names: dict[str, None] = {}
        for path in paths:
            for name in values(group, path):
                names[name] = None
                if tally.is_full():
                    yield
        for name in names:
            if tally.is_full():
                yield
            if not sees(name, decisions):
                error = {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "error_message": hidden.text}
                given = {"group_id": getattr(group, _GROUP_ID), **error}
                groups[position] = blank(type(group), version, given)
                break


def _tell_operations(response: Response, told: Operations, decisions: Decisions, tally: Tally) -> Steps[None]:
    if not told.of:
        if getattr(response, told.field) != NOT_ASKED:
            setattr(response, told.field, cluster_operations(decisions))
        return
    for each in getattr(response, told.of):
        if getattr(each, told.field) != NOT_ASKED:
            setattr(each, told.field, operations_of(told.resource, getattr(each, told.name), decisions))
            if tally.is_full(8):
                yield


def cluster_operations(decisions: Decisions) -> int:
    """Return the operations on the cluster that a client is told: none if it may not describe the cluster."""
    if not decisions.suffices_on_cluster(AclOperation.DESCRIBE):
        return 0
    return operations_of(AclResourceType.CLUSTER, "", decisions)
