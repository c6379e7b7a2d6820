"""The gate that each request passes before a route sees it.

Rules:
- The Host header must name the console. So a page of another site, whose name was pointed to this machine (DNS
  rebinding), reads nothing.
- An action must come from a page of the console: its Origin, its Sec-Fetch-Site and the token of its form say so.
- What a page of another site loads is refused; a link to the console is not.
- In read-only mode actions that change the cluster are refused.
- The requests of one session, and of all, are bounded.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from starlette.requests import Request

from ottla.console.options import ConsoleOptions
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import PageRoute
from ottla.console.security.sessions import ConsoleSession

COOKIE = "ottla-console"
TOKEN_FIELD = "_token"
_LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_SAME_SITE = frozenset({"same-origin", "none"})


def check_host(request: Request, options: ConsoleOptions) -> None:
    """Refuse a request that was made for another name."""
    given = request.headers.get("host", "")
    try:
        name = urlsplit(f"//{given}").hostname or ""
    except ValueError:
        name = ""
    allowed = {options.host.lower(), *(each.lower() for each in options.names)}
    if options.is_loopback:
        allowed |= _LOOPBACK_NAMES
    elif options.host in ("0.0.0.0", "::") and not options.names:
        return  # any address of this machine; signing in is demanded there
    if name.lower() not in allowed:
        raise RefusedRequest(
            421, "this name is not the console's", "`ottla console --name NAME` serves the console under another name"
        )


def check_reader(request: Request) -> None:
    """Refuse a page of another site that loads something of the console. A user may follow a link to it."""
    if request.method == "POST":
        return  # `check_origin` is stricter
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in _SAME_SITE and request.headers.get("sec-fetch-mode") != "navigate":
        raise RefusedRequest(403, "another site loads this page", "open the console itself")


def check_origin(request: Request) -> None:
    """Refuse an action that another site sends."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in _SAME_SITE:
        raise RefusedRequest(403, "another site sent this form")
    origin = request.headers.get("origin")
    if origin is not None and _netloc(origin) != request.headers.get("host"):
        raise RefusedRequest(403, "another site sent this form")


def check_token(session: ConsoleSession, given: str) -> None:
    """Refuse an action whose form was not made for this session."""
    if not hmac.compare_digest(session.token.encode(), given.encode("utf-8", "replace")):
        raise RefusedRequest(403, "this form is too old, or not of this session", "load the page again")


def check_mode(route: PageRoute, options: ConsoleOptions) -> None:
    """Refuse to change anything in read-only mode."""
    if options.read_only and route.method == "POST" and not route.in_read_only:
        raise RefusedRequest(403, "the console is read-only", "start it without --read-only to change the cluster")


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None
