"""Authentication: who sends a request, by its Authorization header or by the client's certificate.

Rules:
- One Authorization header at most, of bounded length; a request with two is refused, since a proxy might
  have checked the other one.
- A header counts before the certificate: a client with a wrong password is refused, even with a good certificate.
- The answer to a failure is the same for all reasons, and comes after a delay. The reasons are in the log.
- The answer that too many passwords are being checked comes after the same delay.
"""

from __future__ import annotations

import asyncio
import binascii
import logging
from base64 import b64decode
from typing import Final, NamedTuple

from starlette.requests import Request

from ottla.model import limits
from ottla.registry.errors import BadRequest
from ottla.registry.security.caller import Caller, certificate_of, host_of
from ottla.registry.security.https_listener import HttpsListener
from ottla.registry.security.passwords import PasswordCheck
from ottla.registry.security.refusals import Unauthorized
from ottla.registry.security.tokens import TokenCheck
from ottla.security.jwt import InvalidToken
from ottla.security.name_rules import NoMatchingRule
from ottla.security.principal import Principal
from ottla.web.password_turns import TooBusy

log = logging.getLogger(__name__)

_MILLIS: Final = 1_000


class Methods(NamedTuple):
    """The ways to authenticate; None for those that are not accepted."""

    passwords: PasswordCheck | None = None
    tokens: TokenCheck | None = None
    certificates: HttpsListener | None = None


class CallerAuthentication:
    def __init__(self, methods: Methods, realm: str, delay_ms: int) -> None:
        self._methods = methods
        self._delay_ms = delay_ms
        quoted = realm.replace("\\", "\\\\").replace('"', '\\"')
        self._challenges: tuple[str, ...] = ()
        if methods.passwords is not None:
            self._challenges += (f'Basic realm="{quoted}"',)
        if methods.tokens is not None:
            self._challenges += (f'Bearer realm="{quoted}"',)

    async def caller_of(self, request: Request) -> Caller:
        """Return who sends the request. Raises Unauthorized, BadRequest, Unavailable, TooBusy."""
        try:
            return Caller(await self._principal_of(request), host_of(request))
        except Unauthorized as refused:
            log.info("a request from %s is not authenticated: %s", host_of(request), refused)
            if request.headers.get("authorization") is not None:
                await self._delay()
            raise Unauthorized(str(refused), self._challenges, refused.claimed) from None
        except TooBusy:
            await self._delay()
            raise

    async def _delay(self) -> None:
        await asyncio.sleep(self._delay_ms / _MILLIS)

    async def _principal_of(self, request: Request) -> Principal:
        given = request.headers.getlist("authorization")
        if not given:
            return self._by_certificate(request)
        if len(given) > 1:
            raise Unauthorized("it has more than one Authorization header")
        if len(given[0]) > limits.AUTHORIZATION_BYTES_MAX:
            raise BadRequest(431, "HTTP 431 Request Header Fields Too Large")
        scheme, _, credentials = given[0].partition(" ")
        match scheme.lower():
            case "basic" if self._methods.passwords is not None:
                return await self._by_password(self._methods.passwords, credentials.strip(), host_of(request))
            case "bearer" if self._methods.tokens is not None:
                try:
                    return Principal.user(await self._methods.tokens.user_of(credentials.strip()))
                except InvalidToken as invalid:
                    raise Unauthorized(str(invalid)) from None
        raise Unauthorized("the scheme of its Authorization header is not accepted")

    async def _by_password(self, passwords: PasswordCheck, credentials: str, host: str) -> Principal:
        try:
            user, colon, password = b64decode(credentials, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            raise Unauthorized("its Basic credentials are not base64 of UTF-8") from None
        if not (user and colon and password):
            raise Unauthorized("its Basic credentials are not of the form user:password")
        if not await passwords.confirms(user, password, host):
            raise Unauthorized("the cluster does not accept the user and the password", claimed=user)
        return Principal.user(user)

    def _by_certificate(self, request: Request) -> Principal:
        if self._methods.certificates is None:
            raise Unauthorized("it has no Authorization header")
        try:
            principal = self._methods.certificates.principal_in(certificate_of(request))
        except (NoMatchingRule, ValueError) as error:
            raise Unauthorized(f"its certificate names no principal: {error}") from None
        if principal is None:
            raise Unauthorized("it has neither an Authorization header nor a certificate")
        return principal
