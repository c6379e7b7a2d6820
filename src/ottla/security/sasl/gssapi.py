"""GSSAPI (RFC 4752): tokens of a security context (Kerberos), then one message each about the layer that protects what
follows. Only "no layer" is offered and accepted, as with Kafka: TLS protects connections.

The context is given: a library makes it, and its calls block. The rest of the exchange is here, without I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, NoReturn, Protocol

from ottla.security.kerberos_names import KerberosRules, parse_kerberos_name
from ottla.security.name_rules import NoMatchingRule
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed
from ottla.security.sasl.failures import InvalidCredentials

GSSAPI: Final = "GSSAPI"
_NO_LAYER: Final = 1
# The layers that are offered, and three bytes with the size of the largest protected message; there is none.
_OFFER: Final = bytes((_NO_LAYER, 0, 0, 0))
_CHOICE_BYTES: Final = 4  # an authorization id may follow


class GssFailed(Exception):
    """The library refused a token or a message. The text is for the log."""


class GssContext(Protocol):
    """One side's security context. Each call may block, and raises GssFailed."""

    def step(self, token: bytes) -> bytes:
        """Take a token of the other side (empty at the beginning); return the next one, empty if there is none."""

    @property
    def complete(self) -> bool:
        """Whether both sides have proved who they are."""

    def initiator(self) -> str:
        """Return the client's name in its ticket, when the context is complete."""

    def wrap(self, message: bytes) -> bytes:
        """Sign a message."""

    def unwrap(self, message: bytes) -> bytes:
        """Check the signature of a message of the other side, and return what it says."""


class _Expects(Enum):
    TOKEN = auto()
    NOTHING = auto()  # the client's context is complete, too, and it waits for the offer
    CHOICE = auto()
    NO_MORE = auto()


class GssServer:
    """One exchange. `short_name` turns the name in a ticket into that of the principal; it raises ValueError.

    A client may name an authorization id. As with Kafka it has no effect: the principal is that of the ticket. (Some
    clients in Python send the service's name there.)
    """

    def __init__(self, context: GssContext, short_name: Callable[[str], str]) -> None:
        self._context = context
        self._short_name = short_name
        self._expects = _Expects.TOKEN

    def respond(self, message: bytes) -> bytes | Authenticated:
        expected, self._expects = self._expects, _Expects.NO_MORE
        try:
            if expected is _Expects.TOKEN:
                return self._step(message)
            if expected is _Expects.NOTHING:
                return self._offer() if not message else _refuse("a token arrived after the last one")
            if expected is _Expects.CHOICE:
                return self._accept(self._context.unwrap(message))
        except GssFailed as failure:
            _refuse(str(failure))
        _refuse("a message arrived after the end of the exchange")

    def _step(self, token: bytes) -> bytes:
        if not token:
            _refuse("the client sent no token")
        answer = self._context.step(token)
        if not self._context.complete:
            self._expects = _Expects.TOKEN
            return answer
        if not answer:
            return self._offer()
        self._expects = _Expects.NOTHING
        return answer

    def _offer(self) -> bytes:
        self._expects = _Expects.CHOICE
        return self._context.wrap(_OFFER)

    def _accept(self, choice: bytes) -> Authenticated:
        if len(choice) < _CHOICE_BYTES:
            _refuse("the client's choice of a security layer is too short")
        if choice[0] != _NO_LAYER:
            _refuse(f"the client chose a security layer that was not offered ({choice[0]})")
        try:
            return Authenticated(Principal.user(self._short_name(self._context.initiator())), b"")
        except ValueError as error:
            _refuse(str(error))


class GssClient:
    """One exchange. `token` is the first one of the context."""

    def __init__(self, context: GssContext, token: bytes) -> None:
        self._context = context
        self._token = token
        self._has_chosen = False

    def first(self) -> bytes:
        return self._token

    def respond(self, challenge: bytes) -> bytes | None:
        if self._has_chosen:
            return None
        try:
            if not self._context.complete:
                return self._context.step(challenge)
            offer = self._context.unwrap(challenge)
            if len(offer) != len(_OFFER) or not offer[0] & _NO_LAYER:
                raise GssFailed("it demands a security layer of SASL")
            self._has_chosen = True
            return self._context.wrap(_OFFER)
        except GssFailed as failure:
            raise AuthenticationFailed(str(failure)) from None


def local_name(rules: KerberosRules, name: str) -> str:
    """Return the name of the principal for a name in a ticket; raise ValueError."""
    try:
        short = rules.short_name(parse_kerberos_name(name))
    except NoMatchingRule as error:
        raise ValueError(str(error)) from None
    if not short:
        raise ValueError(f"the rules give {name!r} an empty name")
    return short


def _refuse(reason: str) -> NoReturn:
    raise InvalidCredentials(GSSAPI, reason)
