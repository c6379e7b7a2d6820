"""TokenCheck: whose bearer token (JWT) a request has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.registry.security.token_keys import TokenKeys
from ottla.security.jwks import VerificationKey
from ottla.security.jwt import TokenExpectations, UnknownKey, check_token


class TokenCheck:
    def __init__(self, keys: TokenKeys, expectations: TokenExpectations, now_ms: Callable[[], int]) -> None:
        self.keys = keys
        self._expectations = expectations
        self._now_ms = now_ms

    async def user_of(self, token: str) -> str:
        """Return the name of the user. Raises InvalidToken."""
        try:
            return self._checked(token, await self.keys.known())
        except UnknownKey:
            return self._checked(token, await self.keys.again())

    def _checked(self, token: str, keys: Sequence[VerificationKey]) -> str:
        return check_token(token, keys, self._now_ms(), self._expectations).principal_name
