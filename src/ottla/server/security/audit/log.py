"""AuditLog: what clients were allowed and refused, as lines that an AuditWriter writes (`writer.py`).

It is off by default. Lines wait in memory, at most `limits.AUDIT_EVENTS_MAX`; if they come faster than they are
written, the rest is counted, and the count is written in their place, as with events above the share of one principal
(`shares.py`). An event is encoded when it is noted, so that no turn of the loop encodes very many. A decision
that a connection remembers is not asked for again, so it is noted once per connection until the rules change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ottla.model import limits
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.audit_event import (
    API,
    AUTHENTICATE,
    CHANGE,
    CHANGING_OPERATIONS,
    LISTENER,
    AuditEvent,
    AuditKind,
)
from ottla.security.principal import Principal
from ottla.server.security.audit.shares import AuditShares


class AuditLog:
    def __init__(self, kinds: Collection[AuditKind], now_ms: Callable[[], int]) -> None:
        self._all = AuditKind.ALL in kinds
        self._refused = self._all or AuditKind.REFUSED in kinds
        self._changes = self._all or AuditKind.CHANGES in kinds
        self._authentication = self._all or AuditKind.AUTHENTICATION in kinds
        self._now_ms = now_ms
        self._waiting: list[str] = []
        self._dropped = 0
        self._shares = AuditShares()

    def note_access(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource: AclResourceType,
        name: str,
        allowed: bool,
    ) -> None:
        is_wanted = (self._all or (self._changes and operation in CHANGING_OPERATIONS)) if allowed else self._refused
        if is_wanted:
            self._note(AuditEvent.access(self._now_ms(), str(principal), host, operation, resource, name, allowed))

    def note_change(self, principal: Principal, host: str, api: str, named: str, allowed: bool = True) -> None:
        """Note a request that changes something, and whether it was allowed to."""
        if self._changes if allowed else self._refused:
            more = (("named", named),)
            self._note(AuditEvent(self._now_ms(), str(principal), host, CHANGE, API, api, allowed, more))

    def note_login(self, principal: str, host: str, listener: str, mechanism: str) -> None:
        if self._authentication:
            self._note_authentication(principal, host, listener, True, ("mechanism", mechanism))

    def note_failed_login(self, claimed: str, host: str, listener: str, mechanism: str, reason: str) -> None:
        """Note a client that did not prove who it is; `claimed` is no principal, since anybody can claim any name."""
        if self._authentication:
            more = ("mechanism", mechanism), ("claimed", claimed), ("reason", reason)
            self._note_authentication("", host, listener, False, *more)

    def _note_authentication(
        self, principal: str, host: str, listener: str, allowed: bool, *more: tuple[str, str]
    ) -> None:
        self._note(AuditEvent(self._now_ms(), principal, host, AUTHENTICATE, LISTENER, listener, allowed, more))

    def _note(self, event: AuditEvent) -> None:
        if len(self._waiting) >= limits.AUDIT_EVENTS_MAX:
            self._dropped += 1
        elif (line := self._shares.line(event)) is not None:
            self._waiting.append(line)

    def take(self) -> list[str]:
        """Return the lines that wait, and forget them."""
        lines, self._waiting = self._waiting, []
        dropped, self._dropped = self._dropped, 0
        lines += [event.line() for event in self._shares.summaries(self._now_ms())]
        if dropped:
            lines.append(self.missing(dropped))
        return lines

    def missing(self, count: int) -> str:
        """Return the line that stands for lines which could not be written."""
        what = f"{count} events are missing: they could not be written"
        return AuditEvent(self._now_ms(), "", "", what, "", "", False).line()
