"""A handler behind the guard, made from the declaration of its API (`server/api/needs.py`).

The layers are handlers themselves, each around the next one: rights of the whole request, then items, then a module of
its own, then the handler; visibility is around the inner ones, because it changes the response.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from ottla.model.errors import ApiError
from ottla.server.api.changes.notes import noted
from ottla.server.api.context import Context
from ottla.server.api.guard.checks import decisions_of, denied, missing
from ottla.server.api.guard.items import ItemsGuard
from ottla.server.api.guard.refusal import Paths, refusal
from ottla.server.api.guard.visibility import visible
from ottla.server.api.needs import Needs
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.wire import api
from ottla.wire.message import Request, Response

Refuse = Callable[[Any, ApiError], Response]  # takes a request of one kind
_VALIDATE_ONLY = "validate_only"


def guarded(handler: Handler, request: type[Request[Response]], needs: Needs, refuse: Refuse | None) -> Handler:
    """Return the handler behind the guard; `refuse` is how the active controller refuses whole requests of this API."""
    layer = noted(handler, request.name, needs)
    response = api.response_class(request.key)
    if needs.guard:
        layer = importlib.import_module(f"ottla.server.api.guard.{needs.guard}").guard(layer)
    if needs.items is not None:
        layer = ItemsGuard(needs.items, layer, response)
    if needs.sees or needs.hides or needs.operations:
        layer = visible(needs, layer)
    if needs.rights or needs.on_controllers:
        layer = _with_rights(needs, layer, request, needs.refuse or refuse)
    if layer is not handler and hasattr(request, _VALIDATE_ONLY):
        layer = _validating(layer)
    return wraps(handler)(layer) if layer is not handler else handler


def _validating(handler: Handler) -> Handler:
    """Return the handler such that a request which only validates does not appear as a change in the audit log.

    The guards of such requests decide before they return.
    """

    def handle(asked: Request[Response], context: Context) -> Answer[Response]:
        if not getattr(asked, _VALIDATE_ONLY):
            return handler(asked, context)
        decisions = decisions_of(context)
        decisions.only_validates = True
        try:
            return handler(asked, context)
        finally:
            decisions.only_validates = False

    return handle


def _with_rights(needs: Needs, handler: Handler, request: type[Request[Response]], refuse: Refuse | None) -> Handler:
    name, response = request.name, api.response_class(request.key)
    on_controllers = needs.rights if needs.on_controllers is None else needs.on_controllers
    mirror = Paths.between(*needs.mirror.split(" > ")) if needs.mirror else None

    def check(asked: Request[Response], context: Context) -> Answer[Response]:
        rights = on_controllers if context.connection.controller else needs.rights
        right = missing(rights, asked, decisions_of(context))
        if right is None:
            return handler(asked, context)
        error = denied(right, name)
        if refuse is not None:
            return refuse(asked, error)
        given = dict(needs.refused)
        if needs.explained:
            given["error_message"] = error.text
        return refusal(asked, response, context.request_version, error, mirror, **given)

    return check
