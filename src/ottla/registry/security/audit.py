"""RegistryAudit: the audit log of a registry: clients that are refused, and requests that change something.

Its lines have the format of the brokers' (`server/security/audit/`). Each request proves anew who sends it, so that is
not noted on its own; a request that changes something is, with its method, its path and the subject.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from starlette.requests import Request

from ottla.model import limits
from ottla.model.config import Config
from ottla.model.settings.own import OTTLA_AUDIT_EVENTS, OTTLA_AUDIT_FILE, OTTLA_AUDIT_TO
from ottla.registry.security.caller import Caller, caller_of, certificate_of, host_of
from ottla.registry.security.refusals import Forbidden, MissingRight, Unauthorized
from ottla.registry.security.settings import InvalidRegistrySettings
from ottla.registry.security.subject_rights import SubjectRight
from ottla.security.audit_event import AuditKind
from ottla.security.principal import ANONYMOUS
from ottla.server.loop.workers import in_worker
from ottla.server.security.audit.log import AuditLog
from ottla.server.security.audit.sinks import AuditFile
from ottla.server.security.audit.writer import AuditWriter
from ottla.server.security.logins import NO_MECHANISM, TLS, printable
from ottla.server.settings.security_refusals import audit_file_problem

_CHANGES: Final = (
    SubjectRight.REGISTER,
    SubjectRight.DELETE,
    SubjectRight.CHANGE_SETTINGS,
    SubjectRight.ADMINISTER,
)
_UNTRUSTED: Final = "FORWARDED"  # the mechanism of a request that claims to come from another instance
_SCHEMES: Final = ("BASIC", "BEARER")


class RegistryAudit:
    def __init__(self, audit: AuditLog, writer: AuditWriter) -> None:
        self._audit = audit
        self._writer = writer
        self._running: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, config: Config, now_ms: Callable[[], int]) -> RegistryAudit | None:
        """Return the audit log; None if it is off. Raises InvalidRegistrySettings."""
        to = config[OTTLA_AUDIT_TO]
        if not to:
            return None
        if "topic" in to:
            raise InvalidRegistrySettings(f"{OTTLA_AUDIT_TO.name}: a registry writes its audit log to a file")
        problem = audit_file_problem(config)
        if problem is not None:
            raise InvalidRegistrySettings(problem)
        audit = AuditLog([AuditKind(name) for name in config[OTTLA_AUDIT_EVENTS]], now_ms)
        return cls(audit, AuditWriter(audit, [AuditFile(config[OTTLA_AUDIT_FILE] or "", _in_worker)]))

    def start(self) -> None:
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._writer.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(limits.AUDIT_FLUSH_MS / 1_000)
            await self._writer.flush()

    def note_refusal(self, request: Request, error: Exception) -> None:
        """Note a request that is answered with an error, if it is one about who sends it."""
        match error:
            case Unauthorized():
                self._note_failed_login(request, error.claimed, _mechanism(request), str(error))
            case Forbidden(right=None):
                self._note_failed_login(request, "", _UNTRUSTED, str(error))
            case Forbidden(right=MissingRight() as right):
                caller = _caller(request)
                self._audit.note_access(caller.principal, caller.host, *right, allowed=False)

    def note_allowed(self, request: Request, right: SubjectRight, pattern: str, named: Sequence[str]) -> None:
        """Note a request that its client may send, if it changes something."""
        if right in _CHANGES:
            caller = _caller(request)
            self._audit.note_change(caller.principal, caller.host, f"{request.method} {pattern}", "; ".join(named))

    def _note_failed_login(self, request: Request, claimed: str, mechanism: str, reason: str) -> None:
        host, listener = host_of(request), request.url.scheme
        self._audit.note_failed_login(printable(claimed), host, listener, mechanism, printable(reason))


def _mechanism(request: Request) -> str:
    """Return how the client tried to prove who it is; what it wrote in place of a scheme may be a secret."""
    given = request.headers.get("authorization")
    if given is None:
        return TLS if certificate_of(request) is not None else NO_MECHANISM
    scheme = given.partition(" ")[0].upper()
    return scheme if scheme in _SCHEMES else NO_MECHANISM


def _caller(request: Request) -> Caller:
    return caller_of(request) or Caller(ANONYMOUS, host_of(request))


async def _in_worker(append: Callable[[Sequence[str]], None], lines: Sequence[str]) -> None:
    await in_worker(asyncio.get_running_loop(), None, append, lines)
