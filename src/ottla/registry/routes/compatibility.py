"""/compatibility: whether a schema could be registered, without registering it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.registry.routes.bodies import draft_of
from ottla.registry.routes.call import Call, version_number
from ottla.registry.routes.table import route
from ottla.registry.security.subject_rights import SubjectRight
from ottla.schemas.registry import lookups
from ottla.schemas.registry.entities import SchemaDraft, SubjectVersion
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.names import normal
from ottla.schemas.registry.refusal import RegistryRefusal, version_not_found

_INVALID_SCHEMA = 42201


@route("POST", "/compatibility/subjects/{subject}/versions/{version}", SubjectRight.READ)
async def check_version(call: Call) -> Any:
    draft = draft_of(await call.body())
    subject, version = normal(call.params["subject"]), version_number(call.params["version"])
    call.check_references(subject, draft)
    against = lookups.get(call.machine, subject, version)
    if against is None and version != lookups.LATEST:
        raise version_not_found(version)
    return await call.in_thread(lambda machine: _checked(machine, call, subject, draft, [against] if against else []))


@route("POST", "/compatibility/subjects/{subject}/versions", SubjectRight.READ)
async def check_subject(call: Call) -> Any:
    draft, subject = draft_of(await call.body()), normal(call.params["subject"])
    call.check_references(subject, draft)
    versions = [it for it in call.machine.state.versions(subject) if not it.deleted]
    return await call.in_thread(lambda machine: _checked(machine, call, subject, draft, versions))


def _checked(
    machine: RegistryMachine, call: Call, subject: str, draft: SchemaDraft, previous: Sequence[SubjectVersion]
) -> dict[str, Any]:
    verbose = call.flag("verbose")
    normalize = call.flag("normalize") or machine.scope.config(subject).get("normalize") is True
    try:
        messages = lookups.check_draft(machine, subject, draft, normalize, previous)
    except RegistryRefusal as refused:
        if not verbose or refused.code != _INVALID_SCHEMA:
            raise
        messages = [refused.message]
    return {"is_compatible": not messages, **({"messages": messages} if verbose else {})}
