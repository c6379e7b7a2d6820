"""OauthConversation: one OAUTHBEARER exchange of a connection, which waits for keys where it has to."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.security.jwt import InvalidToken, TokenExpectations, UnknownKey, ValidToken, check_token
from ottla.security.sasl.exchange import Authenticated
from ottla.security.sasl.oauthbearer import OauthServer
from ottla.server.security.verification_keys import VerificationKeys


class TokenRules(NamedTuple):
    """What a token must have to be accepted: it meets the expectations and has all of `scopes`."""

    expectations: TokenExpectations
    scopes: frozenset[str] = frozenset()


class OauthConversation:
    claimed = ""  # a token that is not valid names nobody

    def __init__(self, keys: VerificationKeys | None, rules: TokenRules, now_ms: Callable[[], int]) -> None:
        """`keys` is None for tokens without a signature."""
        self._keys = keys
        self._rules = rules
        self._now_ms = now_ms
        self._exchange = OauthServer(self._check)
        self._may_read_again = keys is not None

    async def respond(self, message: bytes) -> bytes | Authenticated:
        if self._keys is not None:
            await self._keys.known()
        try:
            return self._exchange.respond(message)
        except UnknownKey:
            assert self._keys is not None, "see _check"
            self._may_read_again = False
            await self._keys.read_again()
            return self._exchange.respond(message)

    async def check(self, token: str) -> ValidToken:
        """Check a token that comes without a message of SASL, as over HTTP. Raises InvalidToken."""
        if self._keys is not None:
            await self._keys.known()
        try:
            return self._check(token)
        except UnknownKey:
            assert self._keys is not None, "see _check"
            self._may_read_again = False
            await self._keys.read_again()
            return self._check(token)

    def _check(self, token: str) -> ValidToken:
        keys = () if self._keys is None else self._keys.keys
        try:
            valid = check_token(token, keys, self._now_ms(), self._rules.expectations)
        except UnknownKey as unknown:
            if self._may_read_again:
                raise
            raise InvalidToken(str(unknown)) from None
        if not self._rules.scopes.issubset(valid.scopes):
            raise InvalidToken("the token lacks a scope that is required")
        return valid
