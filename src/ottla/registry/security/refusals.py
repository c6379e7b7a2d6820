"""Errors for clients that are refused: not authenticated (401) or not authorized (403)."""

from __future__ import annotations

from typing import NamedTuple

from ottla.security.acls import AclOperation, AclResourceType


class MissingRight(NamedTuple):
    operation: AclOperation
    resource: AclResourceType
    name: str


class Unauthorized(Exception):
    """The text is for the log; the client is only told that it is refused. `challenges` are the values of
    `WWW-Authenticate`; `claimed` is the user that the client says it is.
    """

    def __init__(self, reason: str, challenges: tuple[str, ...] = (), claimed: str = "") -> None:
        super().__init__(reason)
        self.challenges = challenges
        self.claimed = claimed


class Forbidden(Exception):
    """The text is the answer; `right` is what the client would need, None if it is not trusted at all."""

    def __init__(self, text: str, right: MissingRight | None = None) -> None:
        super().__init__(text)
        self.right = right
