"""/subjects: listing them, looking a schema up under one, deleting one."""

from __future__ import annotations

from functools import partial
from typing import Any

from ottla.model.limits import REGISTRY_SUBJECTS_AT_ONCE
from ottla.registry.routes.bodies import draft_of
from ottla.registry.routes.call import Call, EncodedAnswer
from ottla.registry.routes.entities import schema_json
from ottla.registry.routes.table import route
from ottla.registry.security.subject_rights import SubjectRight
from ottla.schemas.registry import lookups
from ottla.schemas.registry.commands import DeleteSubject
from ottla.schemas.registry.names import EVERY_CONTEXT, normal
from ottla.schemas.registry.refusal import RegistryRefusal, schema_not_found, subject_not_found
from ottla.schemas.registry.searches import subjects_like
from ottla.schemas.registry.state import RegistryState


@route("GET", "/subjects", SubjectRight.AUTHENTICATED)
async def list_subjects(call: Call) -> Any:
    prefix = call.text("subjectPrefix")
    like = partial(
        subjects_like,
        prefix=EVERY_CONTEXT if prefix is None else prefix,
        deleted=call.flag("deleted"),
        deleted_only=call.flag("deletedOnly"),
    )

    def looked(state: RegistryState) -> list[str]:
        return [subject for subject in like(state) if call.rights.sees(subject)]

    state = call.machine.state
    if len(state.subjects) + sum(map(len, state.subjects.values())) <= REGISTRY_SUBJECTS_AT_ONCE:
        return call.page(looked(state))
    return await call.in_thread(lambda machine: EncodedAnswer.rows(call.page(looked(machine.state))))


@route("POST", "/subjects/{subject}", SubjectRight.READ)
async def look_up(call: Call) -> Any:
    draft = draft_of(await call.body())
    subject, deleted = normal(call.params["subject"]), call.flag("deleted")
    call.check_references(subject, draft)
    normalize = call.flag("normalize") or call.machine.scope.config(subject).get("normalize") is True
    found = await call.in_thread(lambda machine: lookups.find_anywhere(machine, subject, draft, normalize, deleted))
    if found is None:
        raise _absent(call, subject, deleted)
    return await call.show(lambda: schema_json(call, found))


@route("GET", "/subjects/{subject}/metadata", SubjectRight.READ)
async def latest_with_metadata(call: Call) -> Any:
    subject, deleted = normal(call.params["subject"]), call.flag("deleted")
    wanted = dict(zip(call.query.get("key", ()), call.query.get("value", ()), strict=False))
    found = lookups.latest_with_metadata(call.machine, subject, wanted, deleted)
    if found is None:
        raise _absent(call, subject, deleted)
    return await call.show(lambda: schema_json(call, found))


@route("DELETE", "/subjects/{subject}", SubjectRight.DELETE)
async def delete_subject(call: Call) -> Any:
    return await call.submit(DeleteSubject(normal(call.params["subject"]), call.flag("permanent")))


def _absent(call: Call, subject: str, deleted: bool) -> RegistryRefusal:
    return schema_not_found() if lookups.exists(call.machine, subject, deleted) else subject_not_found(subject)
