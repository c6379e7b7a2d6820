"""OAUTHBEARER (RFC 7628 as Kafka uses it): the client sends a bearer token and extensions (KIP-342).

A server that refuses a token answers with a JSON document. The client answers that with one byte, and only then does
the exchange fail, with the same document as the error text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ottla.model import limits
from ottla.security.jwt import InvalidToken, UnknownKey, ValidToken
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed
from ottla.security.sasl.failures import InvalidCredentials
from ottla.security.sasl.scram.messages import sasl_name, user_name

OAUTHBEARER: Final = "OAUTHBEARER"
_SEPARATOR: Final = "\x01"
_ANSWER_TO_REFUSAL: Final = b"\x01"
_AUTH: Final = "auth"

_HEADER = re.compile(r"n,(?:a=(?P<name>(?:[^\x00=,]|=2C|=3D)+))?,")
_KEY = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([-_~+/.a-zA-Z0-9]+=*)")

TokenCheck = Callable[[str], ValidToken]


class BearerMessage(NamedTuple):
    token: str
    authorization_id: str
    extensions: dict[str, str]


def parse_bearer_message(message: bytes) -> BearerMessage:
    """Parse the first message of a client; raise ValueError, whose text does not contain the message."""
    if len(message) > limits.OAUTH_MESSAGE_BYTES_MAX:
        raise ValueError(f"the message has {len(message)} bytes")
    try:
        head, *pairs = message.decode().split(_SEPARATOR)
    except UnicodeDecodeError:
        raise ValueError("the message is not text") from None
    header = _HEADER.fullmatch(head)
    if header is None or pairs[-2:] != ["", ""]:
        raise ValueError("the message has an invalid format")
    fields: dict[str, str] = {}
    for pair in pairs[:-2]:
        key, _, value = pair.partition("=")
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value) or key in fields:
            raise ValueError("a key or a value of the message has an invalid format")
        fields[key] = value
    bearer = _BEARER.fullmatch(fields.pop(_AUTH, ""))
    if bearer is None:
        raise ValueError("the message has no bearer token")
    return BearerMessage(bearer[1], user_name(header["name"] or ""), fields)


class OauthServer:
    """One exchange. `validate` raises InvalidToken, or UnknownKey.

    UnknownKey leaves `respond` as it is: the caller may fetch the keys and call `respond` with the same message again.
    If the key stays unknown, `validate` raises InvalidToken then, and the client is told that its token is refused.
    """

    def __init__(self, validate: TokenCheck) -> None:
        self._validate = validate
        self._refusal: str | None = None
        self._over = False
        self.refused_because: str | None = None  # for the log

    def respond(self, message: bytes) -> bytes | Authenticated:
        if self._over:
            raise InvalidCredentials(OAUTHBEARER, "a message arrived after the end of the exchange")
        if self._refusal is not None:
            self._over = True
            refused = AuthenticationFailed(self._refusal)
            refused.reason = self.refused_because or ""
            raise refused
        try:
            bearer = parse_bearer_message(message)
        except ValueError as invalid:
            self._over = True
            raise InvalidCredentials(OAUTHBEARER, str(invalid)) from None
        try:
            token = self._validate(bearer.token)
        except UnknownKey:
            raise
        except InvalidToken as invalid:
            self.refused_because = str(invalid)
            self._refusal = json.dumps({"status": "invalid_token"}, separators=(",", ":"))
            return self._refusal.encode()
        self._over = True
        if bearer.authorization_id not in ("", token.principal_name):
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({bearer.authorization_id}) that is "
                f"different from the token's principal name ({token.principal_name})"
            )
        return Authenticated(Principal.user(token.principal_name), b"", expires_at_ms=token.expires_at_ms)


class OauthClient:
    """One exchange."""

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None, authorization_id: str = "") -> None:
        if not _BEARER.fullmatch(f"Bearer {token}"):
            raise ValueError("the bearer token has characters that such a token cannot have")
        for key, value in (extensions or {}).items():
            if key == _AUTH or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
                raise ValueError(f"the SASL extension {key!r} has an invalid name or value")
        header = f"n,{f'a={sasl_name(authorization_id)}' if authorization_id else ''},"
        pairs = {_AUTH: f"Bearer {token}", **(extensions or {})}
        body = "".join(f"{key}={value}{_SEPARATOR}" for key, value in pairs.items())
        self._message = f"{header}{_SEPARATOR}{body}{_SEPARATOR}".encode()
        self._refusal: str | None = None

    def first(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> bytes | None:
        if self._refusal is not None:
            raise AuthenticationFailed(f"The server refused the token: {self._refusal}")
        if not challenge:
            return None
        self._refusal = ascii(challenge[: limits.REFUSAL_BYTES_SHOWN_MAX].decode(errors="replace"))
        return _ANSWER_TO_REFUSAL
