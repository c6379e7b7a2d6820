"""The library behind GSSAPI (`gssapi`, over the Kerberos of the operating system): contexts and errors in our words.

Rules: this module is imported only where GSSAPI is configured. All calls may block on files or on the network, so
callers with an event loop make them in threads.
"""

from __future__ import annotations

from typing import Final

import gssapi
from gssapi.raw.misc import GSSError as GSSError

from ottla.security.sasl.gssapi import GssFailed

# Errors of Kerberos that may pass: KRB5_KDC_UNREACH and KRB5_REALM_CANT_RESOLVE.
_UNREACHABLE: Final = frozenset({2**32 - 1765328228, 2**32 - 1765328230})
_TELL_NOTHING: Final = ("", "Success", "Unknown error")


class GssUnreachable(GssFailed):
    """No KDC answers now; asking again may help."""


def failure_of(error: GSSError) -> GssFailed:
    """Return an error of the library as ours, in one line."""
    text = "; ".join(error.get_all_statuses(error.min_code, False))  # Kerberos' own code, which tells more
    if not error.min_code or text in _TELL_NOTHING:
        text = "; ".join(error.get_all_statuses(error.maj_code, True))
    return GssUnreachable(text) if error.min_code in _UNREACHABLE else GssFailed(text)


class LibraryContext:
    """A security context of the library, of a client or a server."""

    def __init__(self, context: gssapi.SecurityContext, *, mutual: bool) -> None:
        """`mutual`: the other side must prove its identity, too."""
        self._context = context
        self._mutual = mutual
        self.complete = False

    def step(self, token: bytes) -> bytes:
        """Take a token. The library may have a token for the other side that tells it about a failure, and tells of
        the failure itself with the next question: that token is not sent.
        """
        try:
            answer = self._context.step(token or None)
            self.complete = bool(self._context.complete)
            is_mutual = self.complete and gssapi.RequirementFlag.mutual_authentication in self._context.actual_flags
        except GSSError as error:
            raise failure_of(error) from None
        if self.complete and self._mutual and not is_mutual:
            raise GssFailed("the server's part is missing")
        return answer or b""

    def initiator(self) -> str:
        try:
            return bytes(self._context.initiator_name).decode()
        except GSSError as error:
            raise failure_of(error) from None
        except UnicodeDecodeError:
            raise GssFailed("the name in the ticket is not text") from None

    def wrap(self, message: bytes) -> bytes:
        try:
            return self._context.wrap(message, encrypt=False).message
        except GSSError as error:
            raise failure_of(error) from None

    def unwrap(self, message: bytes) -> bytes:
        try:
            return self._context.unwrap(message).message
        except GSSError as error:
            raise failure_of(error) from None
