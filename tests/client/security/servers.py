"""Servers for the tests of secure connections: TLS contexts, and answers of a broker that wants SASL."""

import contextlib
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.client.scripted import Answer
from tests.support.certificates import Authority, Identity
from tests.support.server_exchange import ServerExchange

from ottla.model.errors import ErrorCode
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed
from ottla.wire.message import Request
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def server_context(identity: Identity, clients: Authority | None = None) -> ssl.SSLContext:
    """A server's context; `clients`: every client needs a certificate of this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        context.load_cert_chain(identity.write(Path(directory), "server"))
    if clients is not None:
        context.load_verify_locations(cadata=clients.pem)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class Handshakes:
    """A server that makes TLS handshakes and hangs up. Unlike asyncio's it says why a handshake failed (an alert)."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "Handshakes":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            with self._context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as handshaking:
                with contextlib.suppress(OSError):
                    handshaking.do_handshake()
                # What the client has sent is read, because a reset would overtake the alert.
                with contextlib.suppress(OSError):
                    handshaking.shutdown(socket.SHUT_WR)
                    while handshaking.recv(4096):
                        pass


class SaslAnswers:
    """The SASL side of a scripted broker with one connection. `exchange` makes the server's side of an exchange."""

    def __init__(self, mechanism: str, exchange: Callable[[], ServerExchange], lifetime_ms: int = 0) -> None:
        self.mechanism = mechanism
        self.lifetime_ms = lifetime_ms
        self.authenticated: list[str] = []
        self._make = exchange
        self._exchange: ServerExchange | None = None

    @property
    def answers(self) -> dict[type[Request[Any]], Answer]:
        return {SaslHandshakeRequest: self._handshake, SaslAuthenticateRequest: self._authenticate}

    def _handshake(self, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        if request.mechanism != self.mechanism:
            return SaslHandshakeResponse(
                error_code=int(ErrorCode.UNSUPPORTED_SASL_MECHANISM), mechanisms=[self.mechanism]
            )
        self._exchange = self._make()
        return SaslHandshakeResponse(error_code=0, mechanisms=[self.mechanism])

    def _authenticate(self, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        assert self._exchange is not None
        try:
            answer = self._exchange.respond(bytes(request.auth_bytes))
        except AuthenticationFailed as error:
            code = int(ErrorCode.SASL_AUTHENTICATION_FAILED)
            return SaslAuthenticateResponse(error_code=code, error_message=str(error), auth_bytes=b"")
        lifetime_ms = 0
        if isinstance(answer, Authenticated):
            self.authenticated.append(str(answer.principal))
            self._exchange, answer, lifetime_ms = None, answer.message, self.lifetime_ms
        return SaslAuthenticateResponse(
            error_code=0, error_message=None, auth_bytes=answer, session_lifetime_ms=lifetime_ms
        )
