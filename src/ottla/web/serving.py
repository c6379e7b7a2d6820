"""Serving an ASGI application inside a running event loop.

Rules:
- `listen` binds the port before there is an application; if the port is taken, the caller gets an `OSError`, and the
  process does not exit.
- Signals are left to the owner of the process.
- `stop` lets requests in progress finish, for `STOP_S` at most.
- Connections without a request are bounded in time and number (`waiting`), and so are TLS handshakes (`tls_acceptor`).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import resource
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from ottla.model import limits
from ottla.web.bodies import BodyBound, BodyLimit
from ottla.web.tls_acceptor import TlsAcceptor
from ottla.web.waiting import bounded

STOP_S = 3


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen as uvicorn does, with bounds on TLS handshakes."""
        await self.lifespan.startup()
        # uvicorn only closes these, and waits until they are closed.
        self.servers = [await self._listen(each) for each in sockets or ()]  # type: ignore[misc]
        self.started = True

    async def _listen(self, listening: socket.socket) -> asyncio.Server | TlsAcceptor:
        """Return what accepts the connections of a port, and can be closed."""
        config = self.config

        def create_protocol() -> asyncio.Protocol:
            made: asyncio.Protocol = config.http_protocol_class(  # type: ignore[call-arg]  # as in uvicorn
                config=config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return made

        if config.ssl is None:
            loop = asyncio.get_running_loop()
            return await loop.create_server(create_protocol, sock=listening, backlog=config.backlog)
        assert config.limit_concurrency is not None, "it is always bounded"
        unfinished_max = max(1, min(limits.HTTPS_HANDSHAKES_MAX, config.limit_concurrency // 2))
        acceptor = TlsAcceptor(
            listening, config.ssl, create_protocol, backlog=config.backlog, unfinished_max=unfinished_max
        )
        acceptor.start()
        return acceptor

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WebServer:
    """One application on one listening socket; with `tls` it serves HTTPS."""

    def __init__(
        self,
        app: ASGIApp,
        listening: socket.socket,
        *,
        body_bytes_max: int | BodyLimit = limits.HTTP_BODY_BYTES_MAX,
        body_on_demand: bool = False,
        connections_max: int | None = None,
        wait_s: float = limits.HTTP_WAIT_S,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if connections_max is None:
            connections_max = _connections_max()
        config = uvicorn.Config(
            BodyBound(app, body_bytes_max, on_demand=body_on_demand),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            h11_max_incomplete_event_size=limits.HTTP_HEAD_BYTES_MAX,
            ws="none",
            http=bounded(connections_max, wait_s),
            backlog=limits.HTTP_BACKLOG,
            limit_concurrency=connections_max,
            timeout_keep_alive=math.ceil(wait_s),
            timeout_graceful_shutdown=STOP_S,
        )
        config.load()
        config.ssl = tls
        self._listening = listening
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._serving = asyncio.create_task(self._server.serve([self._listening]))
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
                raise RuntimeError("the server ended before it began")
            await asyncio.sleep(0)

    async def stop(self) -> None:
        if self._serving is not None:
            self._server.should_exit = True
            await self._serving
            self._serving = None


async def listen(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address; port 0 takes a free one. Raises OSError if it is taken."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listening


def _connections_max() -> int:
    """Return the bound of connections: at most half of the files that the process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = limits.HTTP_REQUESTS_AT_ONCE_MAX
    return most if soft == resource.RLIM_INFINITY else min(most, soft // 2)
