"""The guard for items of a request: the handler gets the allowed ones, and the guard answers the others."""

from __future__ import annotations

import copy

from ottla.model.ids import NO_ID
from ottla.security.decisions import Decisions
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import merged
from ottla.server.api.guard.checks import allows_item, decisions_of, holds
from ottla.server.api.guard.refusal import Paths, blank, mirrored, struct_of
from ottla.server.api.needs import CheckedItems, Right
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.wire.message import Request, Response, Struct


class ItemsGuard:
    def __init__(self, items: CheckedItems, handler: Handler, response: type[Response]) -> None:
        self._items = items
        self._handler = handler
        self._response = response
        self._paths = Paths.between(items.of, items.into)
        self._answer = struct_of(response, self._paths.into[0])

    def __call__(self, request: Request[Response], context: Context) -> Answer[Response]:
        items, decisions = self._items, decisions_of(context)
        found: list[Struct | str] = getattr(request, self._paths.of[0])
        unless = items.of_brokers if context.connection.is_broker and items.of_brokers is not None else items.unless
        if not found or (unless is not None and holds(unless, request, decisions)):
            return self._handler(request, context)
        errors = [self._denied(item, decisions, context) for item in found]
        if not any(errors):
            return self._handler(request, context)
        refused = self._refused(found, errors, context.request_version)
        allowed = [item for item, error in zip(found, errors, strict=True) if error is None]
        if allowed or items.always_asks:
            some = copy.copy(request)
            setattr(some, self._paths.of[0], allowed)
            answer = self._handler(some, context)
        else:
            answer = blank(self._response, context.request_version, {})
        return merged(answer, lambda response: self._merge(response, refused, errors))

    def _denied(self, item: Struct | str, decisions: Decisions, context: Context) -> Right | None:
        """Return the right that the client needs for an item and does not have."""
        items = self._items
        right = items.right if isinstance(items.right, Right) else items.right(item)
        if right is None:
            return None
        if not items.id:
            return None if allows_item(right, item, decisions) else right
        name = getattr(item, right.field, "")
        if (id := getattr(item, items.id)) != NO_ID:
            name = context.member.state.topic_name(id)
        # A topic without a name is unknown, and the handler says so.
        return None if not name or decisions.allows(right.operation, right.resource, name) else right

    def _refused(self, found: list[Struct | str], errors: list[Right | None], version: int) -> list[Struct]:
        refused: list[Struct] = []
        for item, right in zip(found, errors, strict=True):
            if right is not None:
                given = {**dict(self._items.refused), "error_code": right.error}
                if self._items.explained:
                    given["error_message"] = right.error.message
                refused += mirrored((item,), self._paths, self._answer, version, given)
        return refused

    def _merge(self, response: Response, refused: list[Struct], errors: list[Right | None]) -> Response:
        """Add the answers for refused items. An error of the whole request stays as it is."""
        if getattr(response, "error_code", 0):
            return response
        name, order = self._paths.into[0], self._items.order
        answered = getattr(response, name)
        if order == "place" and len(answered) + len(refused) == len(errors):
            one, other = iter(answered), iter(refused)
            setattr(response, name, [next(one if right is None else other) for right in errors])
        else:
            setattr(response, name, [*refused, *answered] if order == "first" else [*answered, *refused])
        return response
