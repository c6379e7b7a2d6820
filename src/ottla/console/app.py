"""The console as an ASGI application: from a request, through the gate, to its route, and the answer back.

Rules:
- A handler is bounded in time, a session in requests at once. A request counts until its answer has been sent, which is
  bounded in time as well (`sending.py`).
- A client that leaves ends a stream. Other handlers go on to their end without it: no action stops half-way because its
  browser was closed.
- An error, of a handler or while its answer is rendered, becomes a page, or a part of one, with a sentence and a hint;
  never a traceback. Each answer has the headers of `security/headers.py`.
- Each action is noted in the log (`action_log.py`), those that the gate refuses as well.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ottla.console import pages, static_files
from ottla.console.action_log import note_action, note_refusal
from ottla.console.answers import Answer, FileAnswer, Fragment, Page, PartStream, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import failed_notice, failed_page, failure_of
from ottla.console.html import markup_of, path_to
from ottla.console.layout import document, encoded
from ottla.console.options import ConsoleOptions
from ottla.console.refusals import RefusedRequest, SignInFirst
from ottla.console.routing import ROUTES, PageRoute
from ottla.console.security.gate import (
    COOKIE,
    TOKEN_FIELD,
    check_host,
    check_mode,
    check_origin,
    check_reader,
    check_token,
)
from ottla.console.security.headers import ALWAYS
from ottla.console.security.sessions import Sessions
from ottla.console.sending import StreamedAnswer, WholeAnswer
from ottla.console.streaming import lines, timely
from ottla.model import limits

THEME_COOKIE = "ottla-theme"
_THEMES = ("light", "dark")
_HTML = "text/html; charset=utf-8"
_FORM = "application/x-www-form-urlencoded"
_FIELDS_MAX = 1_000
# The header of requests that a page sends by itself, for a live part or a stream.
FRAGMENT = "x-fragment"
# What an address has beside letters and digits; everything else in it is percent-encoded.
_IN_ADDRESSES = "/?#&=%~:;,@!$'()*+[]-._"


class ConsoleApp:
    """Serves one cluster's console."""

    def __init__(self, options: ConsoleOptions, sessions: Sessions) -> None:
        pages.load()
        assert static_files.address_of("console.js"), "its route is declared"
        self._options = options
        self._sessions = sessions
        self._strangers = 0  # requests of visitors without a session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        async with AsyncExitStack() as sent:
            response = await self._response(Request(scope, receive), sent)
            response.raw_headers.extend(ALWAYS)
            await response(scope, receive, send)

    async def _response(self, request: Request, sent: AsyncExitStack) -> Response:
        theme = request.cookies.get(THEME_COOKIE, "")
        path = _raw_path(request)
        call = PageCall(path, self._options, self._sessions, theme=theme if theme in _THEMES else "", sent=sent)
        if request.client is not None:
            call = replace(call, host=request.client.host)
        try:
            check_host(request, self._options)
            check_reader(request)
            cookie, is_used = request.cookies.get(COOKIE), FRAGMENT not in request.headers
            call = replace(call, session=self._sessions.find(cookie, is_used=is_used))
            route, call = await self._routed(request, call)
            self._enter(call)
        except SignInFirst:
            note_refusal(request, call, 303)
            return self._written(self._sign_in(request), call)
        except Exception as error:
            response = self._failed(request, error, call)
            note_refusal(request, call, response.status_code)
            return response
        try:
            async with asyncio.timeout(limits.CONSOLE_PAGE_S):
                answer = await route.handler(call)
            response = self._written(answer, call)
        except Exception as error:
            response = self._failed(request, error, call)
        note_action(request, call, response.status_code)
        return response

    async def _routed(self, request: Request, call: PageCall) -> tuple[PageRoute, PageCall]:
        method = "GET" if request.method == "HEAD" else request.method
        found = ROUTES.find(method, call.path)
        if found is None:
            raise RefusedRequest(404, "there is no such page")
        route, params = found
        query = {name: values[0] for name, values in _pairs(request.scope.get("query_string", b"")).items()}
        call = replace(call, params=params, query=query)
        if call.session is None and not route.is_open:
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
            if call.session is not None:
                check_token(call.session, call.form.get(TOKEN_FIELD, ""))
        return route, call

    def _enter(self, call: PageCall) -> None:
        """Count a request. Strangers are counted apart: their waiting to sign in takes no place of those who have."""
        if call.session is None:
            is_full = self._strangers >= limits.CONSOLE_STRANGERS_AT_ONCE_MAX
        else:
            is_full = (
                self._sessions.requests.of_all >= limits.CONSOLE_REQUESTS_AT_ONCE_MAX
                or call.session.requests >= limits.CONSOLE_REQUESTS_PER_SESSION_MAX
                or self._sessions.requests.of(call.user) >= limits.CONSOLE_REQUESTS_PER_USER_MAX
            )
        if is_full:
            raise RefusedRequest(503, "the console is busy", "try again in a moment")
        self._count(call, 1)
        call.sent.callback(self._count, call, -1)

    def _count(self, call: PageCall, one: int) -> None:
        if call.session is None:
            self._strangers += one
        else:
            self._sessions.count_requests(call.session, one)

    def _sign_in(self, request: Request) -> Answer:
        if FRAGMENT in request.headers:
            return Fragment("", status=401)
        wanted = _raw_path(request) if request.method == "GET" else "/"
        return Redirect(path_to("sign-in", to=None if wanted == "/" else wanted))

    def _written(self, answer: Answer, call: PageCall) -> Response:
        """The answer as it is sent."""
        ended = None if call.session is None else call.session.ended
        match answer:
            case Page():
                return WholeAnswer(document(answer, call), answer.status, {"cache-control": "no-store"}, _HTML)
            case Fragment():
                content = encoded(markup_of(answer.content))
                return WholeAnswer(content, answer.status, {"cache-control": "no-store"}, _HTML)
            case Redirect():
                return self._way(answer, call)
            case FileAnswer():
                headers = {"cache-control": answer.cache_control}
                if answer.name:
                    headers["content-disposition"] = f'attachment; filename="{_file_name(answer.name)}"'
                if isinstance(answer.content, bytes):
                    if answer.name and call.session is not None:
                        call.unsent(len(answer.content))
                    return WholeAnswer(answer.content, 200, headers, answer.media_type)
                return StreamedAnswer(timely(answer.content), ended, headers, answer.media_type)
            case PartStream():
                headers = {"cache-control": "no-store"}
                return StreamedAnswer(lines(answer.parts, call), ended, headers, "application/x-ndjson")

    def _failed(self, request: Request, error: Exception, call: PageCall) -> Response:
        status, sentence, hint = failure_of(error, call)
        answer: Answer = failed_page(status, sentence, hint)
        if FRAGMENT in request.headers:
            answer = Fragment(failed_notice(sentence, hint), status)
        try:
            return self._written(answer, call)
        except Exception as second:
            _, sentence, hint = failure_of(second, call)
            return WholeAnswer(f"{sentence}; {hint}\n", 500, {"cache-control": "no-store"}, "text/plain; charset=utf-8")

    def _way(self, answer: Redirect, call: PageCall) -> Response:
        if answer.done and call.session is not None:
            call.session.messages.append(answer.done)
        to = quote(answer.to, _IN_ADDRESSES, errors="replace")
        response = WholeAnswer(
            status_code=303,
            headers={"location": to, "cache-control": "no-store"},
        )
        for name, value in answer.cookies.items():
            secure = self._options.certificate is not None
            if value:
                response.set_cookie(name, value, path="/", secure=secure, httponly=True, samesite="strict")
            else:
                response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="strict")
        return response


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
