"""Logins: how often clients of each listener proved who they are, and how often they did not, by mechanism.

Each failure is logged at level INFO. From time to time one warning has their number by listener and mechanism, however
many there were. The audit log gets each login and each failure.

A client that failed has no principal, only the name that it claimed: whoever reaches the
listener can claim any name, so the name is bounded and made printable, and nothing is counted by it.
"""

from __future__ import annotations

import logging
from typing import Final

from ottla.model import limits
from ottla.server.security.audit.log import AuditLog

log = logging.getLogger(__name__)

# The mechanism of a client certificate; the others have the names of SASL.
TLS: Final = "TLS"
# In place of a mechanism that the listener does not have, or that the client has not chosen yet.
NO_MECHANISM: Final = "NONE"


class LoginCount:
    """The clients of one listener and mechanism since the node started."""

    __slots__ = ("failures", "failures_told", "successes")

    def __init__(self) -> None:
        self.successes = 0
        self.failures = 0
        self.failures_told = 0  # of them, those that were in a line of the log


class Logins:
    def __init__(self, audit: AuditLog | None) -> None:
        self.counts: dict[tuple[str, str], LoginCount] = {}  # by listener and mechanism, both of which are configured
        self._audit = audit

    def succeeded(self, listener: str, mechanism: str, host: str, principal: str) -> None:
        self._count(listener, mechanism).successes += 1
        if self._audit is not None:
            self._audit.note_login(principal, host, listener, mechanism)

    def failed(self, listener: str, mechanism: str, host: str, claimed: str, reason: str) -> None:
        """Note a client that did not prove who it is. The claimed name and the reason hold no secret."""
        mechanism = mechanism or NO_MECHANISM
        self._count(listener, mechanism).failures += 1
        if self._audit is not None:
            self._audit.note_failed_login(printable(claimed), host, listener, mechanism, printable(reason))

    def tell_failures(self) -> None:
        """Log in one line how many clients failed since the last one; called from time to time."""
        told = []
        for (listener, mechanism), count in sorted(self.counts.items()):
            if count.failures > count.failures_told:
                failed, count.failures_told = count.failures - count.failures_told, count.failures
                told.append(f"{failed} with {mechanism} on listener {listener} ({count.failures} since the start)")
        if told:
            log.warning("clients did not prove who they are since the last such line: %s", ", ".join(told))

    def _count(self, listener: str, mechanism: str) -> LoginCount:
        return self.counts.setdefault((listener, mechanism), LoginCount())


def printable(text: str) -> str:
    """Return a text of a client so that it can be logged: bounded, in one line, without control characters."""
    shown = text[: limits.CLAIMED_CHARACTERS_MAX]
    shown = "".join(each if each.isprintable() else "?" for each in shown)
    return shown if len(text) <= limits.CLAIMED_CHARACTERS_MAX else f"{shown}…"
