"""The console as an ASGI application: from a request, through the gate, to its route, and the answer back.

Rules:
- A handler is bounded in time, a session in requests at once. A client that leaves ends the work for it.
- An error becomes a page, or a part of one, with a sentence and a hint; never a traceback.
- Each action is noted in the log: who, from where, what, and how it ended.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ottla.console import pages, static_files
from ottla.console.answers import Answer, FileAnswer, Fragment, Page, PartStream, Redirect, StreamPart
from ottla.console.call import PageCall
from ottla.console.failures import failed_notice, failed_page, failure_of
from ottla.console.html import markup_of, path_to
from ottla.console.layout import document, encoded
from ottla.console.options import ConsoleOptions
from ottla.console.parts.words import visible
from ottla.console.refusals import RefusedRequest, SignInFirst
from ottla.console.routing import ROUTES, PageRoute
from ottla.console.security.gate import (
    COOKIE,
    TOKEN_FIELD,
    check_host,
    check_mode,
    check_origin,
    check_token,
)
from ottla.console.security.headers import ALWAYS
from ottla.console.security.sessions import Sessions
from ottla.model import limits

log = logging.getLogger(__name__)

THEME_COOKIE = "ottla-theme"
_THEMES = ("light", "dark")
_HTML = "text/html; charset=utf-8"
_FORM = "application/x-www-form-urlencoded"
_FIELDS_MAX = 1_000


class ConsoleApp:
    """Serves one cluster's console."""

    def __init__(self, options: ConsoleOptions, sessions: Sessions) -> None:
        pages.load()
        assert static_files.address_of("console.js"), "its route is declared"
        self._options = options
        self._sessions = sessions
        self._at_once = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response = await self._response(Request(scope, receive))
        response.raw_headers.extend(ALWAYS)
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        theme = request.cookies.get(THEME_COOKIE, "")
        path = _raw_path(request)
        call = PageCall(path, self._options, self._sessions, theme=theme if theme in _THEMES else "")
        try:
            check_host(request, self._options)
            route, call = await self._routed(request, call)
            self._enter(call)
            try:
                answer = await self._answered(request, route, call)
            finally:
                self._leave(call)
        except SignInFirst:
            answer = self._sign_in(request)
        except Exception as error:
            answer = _failed(error, call, is_part="x-fragment" in request.headers)
        return self._written(answer, call)

    async def _routed(self, request: Request, call: PageCall) -> tuple[PageRoute, PageCall]:
        method = "GET" if request.method == "HEAD" else request.method
        found = ROUTES.find(method, call.path)
        session = self._sessions.find(request.cookies.get(COOKIE))
        call = replace(call, session=session)
        if found is None:
            raise RefusedRequest(404, "there is no such page")
        route, params = found
        query = {name: values[0] for name, values in _pairs(request.scope.get("query_string", b"")).items()}
        call = replace(call, params=params, query=query)
        if session is None and not route.is_open:
            raise SignInFirst
        if route.method == "POST":
            check_origin(request)
            check_mode(route, self._options)
            if not request.headers.get("content-type", "").startswith(_FORM):
                raise RefusedRequest(415, "an action takes a form")
            lists = _pairs(await request.body())
            call = replace(
                call,
                form={name: values[0] for name, values in lists.items()},
                lists={name: tuple(values) for name, values in lists.items()},
            )
            if session is not None:
                check_token(session, call.form.get(TOKEN_FIELD, ""))
        return route, call

    def _enter(self, call: PageCall) -> None:
        of_session = 0 if call.session is None else call.session.requests
        if (
            self._at_once >= limits.CONSOLE_REQUESTS_AT_ONCE_MAX
            or of_session >= limits.CONSOLE_REQUESTS_PER_SESSION_MAX
        ):
            raise RefusedRequest(503, "the console is busy", "try again in a moment")
        self._at_once += 1
        if call.session is not None:
            call.session.requests += 1

    def _leave(self, call: PageCall) -> None:
        self._at_once -= 1
        if call.session is not None:
            call.session.requests -= 1

    async def _answered(self, request: Request, route: PageRoute, call: PageCall) -> Answer:
        if route.method != "POST":
            async with asyncio.timeout(limits.CONSOLE_PAGE_S):
                return await route.handler(call)
        who = "" if call.session is None else call.session.access.user
        where = "?" if request.client is None else request.client.host
        what = visible(call.path)
        try:
            async with asyncio.timeout(limits.CONSOLE_PAGE_S):
                answer = await route.handler(call)
        except Exception as error:
            log.info("%s at %s: %s failed: %s", who or "everybody", where, what, type(error).__name__)
            raise
        log.info("%s at %s: %s", who or "everybody", where, what)
        return answer

    def _sign_in(self, request: Request) -> Answer:
        if "x-fragment" in request.headers:
            return Fragment("", status=401)
        wanted = _raw_path(request) if request.method == "GET" else "/"
        return Redirect(path_to("sign-in", to=None if wanted == "/" else wanted))

    def _written(self, answer: Answer, call: PageCall) -> Response:
        match answer:
            case Page():
                return Response(document(answer, call), answer.status, {"cache-control": "no-store"}, _HTML)
            case Fragment():
                content = encoded(markup_of(answer.content))
                return Response(content, answer.status, {"cache-control": "no-store"}, _HTML)
            case Redirect():
                return self._way(answer, call)
            case FileAnswer():
                headers = {"cache-control": answer.cache_control}
                if answer.name:
                    headers["content-disposition"] = f'attachment; filename="{_file_name(answer.name)}"'
                if isinstance(answer.content, bytes):
                    return Response(answer.content, 200, headers, answer.media_type)
                return StreamingResponse(self._within(answer.content, call), 200, headers, answer.media_type)
            case PartStream():
                lines = self._within(_lines(answer.parts, call), call)
                return StreamingResponse(lines, 200, {"cache-control": "no-store"}, "application/x-ndjson")

    def _way(self, answer: Redirect, call: PageCall) -> Response:
        if answer.done and call.session is not None:
            call.session.messages.append(answer.done)
        response = Response(status_code=303, headers={"location": answer.to, "cache-control": "no-store"})
        for name, value in answer.cookies.items():
            secure = self._options.certificate is not None
            if value:
                response.set_cookie(name, value, path="/", secure=secure, httponly=True, samesite="strict")
            else:
                response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="strict")
        return response

    async def _within(self, parts: AsyncGenerator[bytes, None], call: PageCall) -> AsyncGenerator[bytes, None]:
        """The parts of an answer that is sent while it is made; it counts as a request of its session until its end."""
        self._enter(call)
        try:
            async with asyncio.timeout(limits.CONSOLE_STREAM_S), aclosing(parts):
                async for each in parts:
                    yield each
        finally:
            self._leave(call)


def _failed(error: Exception, call: PageCall, *, is_part: bool) -> Answer:
    status, sentence, hint = failure_of(error, call)
    if is_part:
        return Fragment(failed_notice(sentence, hint), status)
    return failed_page(status, sentence, hint)


async def _lines(parts: AsyncGenerator[StreamPart, None], call: PageCall) -> AsyncGenerator[bytes, None]:
    """Each part as a line of JSON. An error is a last part, for the element `failed`."""
    try:
        async with aclosing(parts):
            async for each in parts:
                yield _line(each)
    except Exception as error:
        _, sentence, hint = failure_of(error, call)
        yield _line(StreamPart("failed", failed_notice(sentence, hint)))


def _line(part: StreamPart) -> bytes:
    content = {"into": part.into, "html": part.content, "append": part.append}
    return json.dumps(content).encode() + b"\n"


def _raw_path(request: Request) -> str:
    """The path as it was sent: names in it may have slashes, percent-encoded."""
    raw: bytes = request.scope.get("raw_path") or quote(request.url.path).encode()
    return "/" + raw.partition(b"?")[0].decode("ascii", "replace").strip("/")


def _pairs(text: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(text.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise RefusedRequest(400, f"there are more than {_FIELDS_MAX} fields") from None


def _file_name(name: str) -> str:
    return "".join(each if each.isascii() and (each.isalnum() or each in "-_.") else "_" for each in name)
