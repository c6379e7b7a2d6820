"""The REST API of the registry as an ASGI application: Confluent's paths, answers, codes and media types.

The request's `Accept` header decides the media type of the answer: one of Confluent's two, or plain JSON; the first if
there is no preference, 406 if it accepts none of them. Bodies are accepted in all three (and as
`application/octet-stream`).

Each request passes the gate first (`registry/security`), and then needs the right that its route declares. Its body is
read after that; that of a request which another instance forwards, once the signature in its head is right.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ottla.registry.errors import EXPECTED, BadRequest, answer_of
from ottla.registry.metrics import OTHER, PATH, RegistryMetrics
from ottla.registry.port import RegistryStorePort
from ottla.registry.routes import paths, table
from ottla.registry.routes.call import Call, EncodedAnswer, ForwardedAnswer, PlainText
from ottla.registry.security.audit import RegistryAudit
from ottla.registry.security.gate import RegistryGate
from ottla.registry.security.subject_rights import EVERYTHING
from ottla.web.answers import REGISTRY_JSON, REGISTRY_MEDIA_TYPES, error_answer, json_answer, media_type_for
from ottla.web.bodies import BodyRefused

log = logging.getLogger(__name__)

_ROUTE = "ottla.route"  # in the scope of a request: its method and the pattern of its path
_CONSUMED = (*REGISTRY_MEDIA_TYPES, "application/octet-stream")
_ALWAYS = {
    b"cache-control": b"no-cache, no-store, must-revalidate",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"SAMEORIGIN",
    b"x-xss-protection": b"1; mode=block",
    b"vary": b"Accept-Encoding",
}


def build(store: RegistryStorePort, gate: RegistryGate | None = None, audit: RegistryAudit | None = None) -> ASGIApp:
    """Return the application over a store. Without a gate everybody may do everything."""
    table.load()
    return _App(store, gate, audit)


class _App:
    def __init__(self, store: RegistryStorePort, gate: RegistryGate | None, audit: RegistryAudit | None) -> None:
        self._store = store
        self._gate = gate
        self._audit = audit
        self._metrics = RegistryMetrics()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        begun_s = time.monotonic()
        response = await self._answer(request)
        route = scope.get(_ROUTE, (OTHER, OTHER))
        self._metrics.answered(route, response.status_code, time.monotonic() - begun_s)
        response.raw_headers.extend(_ALWAYS.items())
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        media_type = media_type_for(request.headers.get("accept"), REGISTRY_MEDIA_TYPES)
        try:
            if media_type is None:
                raise BadRequest(406, "HTTP 406 Not Acceptable")
            return _respond(await self._handle(request), media_type)
        except BodyRefused as refused:
            return refused.response
        except ForwardedAnswer as forwarded:
            return forwarded.response
        except EXPECTED as error:
            if self._audit is not None:
                self._audit.note_refusal(request, error)
            return answer_of(error, media_type or REGISTRY_JSON)
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return error_answer(500, "Internal Server Error", media_type=media_type or REGISTRY_JSON)

    async def _handle(self, request: Request) -> Any:
        rights = EVERYTHING if self._gate is None else await self._gate.rights_of(request)
        raw = request.scope.get("raw_path") or request.scope["path"].encode()
        if raw.partition(b"?")[0] == PATH and request.method in ("GET", "HEAD"):
            request.scope[_ROUTE] = request.method, PATH.decode()
            rights.check_metrics()
            return await self._metrics.tell(self._store)
        segments, query = paths.in_context(
            paths.segments_of(raw.partition(b"?")[0]), paths.query_of(request.scope["query_string"])
        )
        if paths.may_be_aliased(segments):
            segments, query = paths.unaliased(segments, query, self._store.state.scope)
        found = table.find(request.method, segments)
        request.scope[_ROUTE] = request.method, found.pattern
        if request.method in ("POST", "PUT"):
            _check_content(request)
        rights.check(found.right, found.params.get("subject", ""))
        if self._audit is not None:
            named = [*found.params.values(), *(f"{name}={value}" for name in query for value in query[name])]
            self._audit.note_allowed(request, found.right, found.pattern, named)
        return await found.handler(Call(request, self._store, found.params, query, rights))


def _check_content(request: Request) -> None:
    given = (request.headers.get("content-type") or REGISTRY_JSON).partition(";")[0].strip().lower()
    if given not in _CONSUMED:
        raise BadRequest(415, "HTTP 415 Unsupported Media Type")


def _respond(answer: Any, media_type: str) -> Response:
    if isinstance(answer, EncodedAnswer):
        return Response(answer.body, media_type=media_type)
    if isinstance(answer, PlainText):
        return Response(answer.text.encode(), media_type=media_type)
    return answer if isinstance(answer, Response) else json_answer(answer, media_type=media_type)
