"""Principal: the identity that a connection has proven, as Kafka names it (`User:alice`)."""

from __future__ import annotations

from typing import NamedTuple

USER = "User"


class Principal(NamedTuple):
    """`token_authenticated` marks a client that used a delegation token, which may not create further tokens."""

    type: str
    name: str
    token_authenticated: bool = False

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"

    @classmethod
    def user(cls, name: str) -> Principal:
        return cls(USER, name)


# The principal of every connection without authentication, as with Kafka.
ANONYMOUS = Principal.user("ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """Parse `Type:name`; raise ValueError if it has another form."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"expected a principal of the form Type:name, for example User:alice, but got {text!r}")
    return Principal(kind, name)
