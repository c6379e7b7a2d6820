"""Who changed what lately: the newest changes in the cluster's audit log, as far as this user may read it."""

from __future__ import annotations

from ottla.client.admin import Admin
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.operations.security.audit_entries import AuditEntry, AuditTail


class AuditedChanges:
    """`newest` has the changes, the newest first; None where there is no audit log that may be read."""

    def __init__(self, admin: Admin) -> None:
        self._tail = AuditTail(admin, limits.CONSOLE_AUDIT_LOOKED_AT)
        self.newest: tuple[AuditEntry, ...] | None = None

    async def look(self) -> None:
        """Read what came since the last look. The first one reads the end of the log."""
        try:
            found = await self._tail.read()
        except ApiError:  # no such topic, or no right to read it
            self.newest = None
            return
        changes = sorted((each for each in found if each.is_change), key=lambda each: -each.at_ms)
        self.newest = (*changes, *(self.newest or ()))[: limits.CONSOLE_AUDITED_CHANGES]
