"""The console as a service: its listening socket, its sessions, and its end."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time

from starlette.requests import Request
from starlette.types import Scope

from ottla.console.access import Access
from ottla.console.app import ConsoleApp
from ottla.console.options import ConsoleOptions
from ottla.console.security.gate import COOKIE
from ottla.console.security.sessions import Sessions
from ottla.model import limits
from ottla.web.bodies import BodyLimit
from ottla.web.serving import WebServer, listen

_LOOK_S = 60


class ConsoleService:
    """Use as `start`, then `stop`. It serves whether or not a broker answers: its pages say what is wrong."""

    def __init__(self, options: ConsoleOptions) -> None:
        self.options = options
        self.url = ""
        self._server: WebServer | None = None
        self._sessions: Sessions | None = None
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises OSError if the address is taken, or a file of the certificate cannot be read."""
        options = self.options
        everybody = None if options.signs_in else Access(options)
        self._sessions = Sessions(time.monotonic, everybody)
        tls = _tls(options)
        listening = await listen(options.host, options.port)
        app = ConsoleApp(options, self._sessions)
        bound = _form_bytes_max(self._sessions)
        # On demand: who has to sign in first is led there, and a form that is refused is answered with a page.
        self._server = WebServer(app, listening, body_bytes_max=bound, body_on_demand=True, tls=tls)
        await self._server.start()
        self.url = _url(options, listening)
        self._looking = asyncio.create_task(self._end_old_sessions(self._sessions))

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        try:
            if self._server is not None:
                await self._server.stop()
        finally:
            if self._sessions is not None:
                await self._sessions.close()

    async def _end_old_sessions(self, sessions: Sessions) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            sessions.end_old()


def _form_bytes_max(sessions: Sessions) -> BodyLimit:
    """Return the bound of a form: who has not signed in can send no more than the form for that."""

    def bound(scope: Scope) -> int:
        is_known = sessions.find(Request(scope).cookies.get(COOKIE), is_used=False) is not None
        return limits.CONSOLE_FORM_BYTES_MAX if is_known else limits.CONSOLE_SIGN_IN_BYTES_MAX

    return bound


def _tls(options: ConsoleOptions) -> ssl.SSLContext | None:
    if options.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(options.certificate, options.key)
    return context


def _url(options: ConsoleOptions, listening: socket.socket) -> str:
    port = listening.getsockname()[1]
    scheme = "http" if options.certificate is None else "https"
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"{scheme}://{host}:{port}"
