"""/subjects/{subject}/versions: registering, and the versions one by one."""

from __future__ import annotations

from typing import Any

from ottla.registry.routes.bodies import draft_of, retagged
from ottla.registry.routes.call import Call, PlainText, version_number
from ottla.registry.routes.entities import registered_json, schema_json, tags_json, text_of
from ottla.registry.routes.table import route
from ottla.registry.security.subject_rights import SubjectRight
from ottla.schemas.registry import lookups
from ottla.schemas.registry.commands import DeleteVersion, Register
from ottla.schemas.registry.entities import SubjectVersion
from ottla.schemas.registry.names import context_of, is_valid, normal
from ottla.schemas.registry.refusal import invalid_subject, subject_not_found, version_not_found
from ottla.schemas.registry.registering import known_already


@route("GET", "/subjects/{subject}/versions", SubjectRight.READ)
async def list_versions(call: Call) -> Any:
    subject = normal(call.params["subject"])
    deleted, only, negative = (call.flag(name) for name in ("deleted", "deletedOnly", "deletedAsNegative"))
    if not lookups.exists(call.machine, subject, deleted or only):
        raise subject_not_found(subject)
    versions = call.machine.state.versions(subject)
    if negative:
        return call.page([-it.version if it.deleted else it.version for it in versions])
    return call.page([it.version for it in versions if (it.deleted if only else deleted or not it.deleted)])


@route("POST", "/subjects/{subject}/versions", SubjectRight.REGISTER)
async def register(call: Call) -> Any:
    draft = draft_of(await call.body())
    if not is_valid(call.params["subject"]):
        raise invalid_subject(call.params["subject"])
    command = Register(normal(call.params["subject"]), draft, call.flag("normalize"), call.flag("force"))
    call.check_references(command.subject, draft)
    # A schema that is registered already need not be written, so any instance can answer.
    known = await call.in_thread(lambda machine: known_already(machine, command))
    if known is None:
        if draft.id >= 0:
            call.rights.check_import()
        known = await call.submit(command)
    registered = known
    return await call.show(lambda: registered_json(call, registered))


@route("GET", "/subjects/{subject}/versions/{version}", SubjectRight.READ)
async def get_version(call: Call) -> Any:
    it = _version(call, call.flag("deleted"))
    return await call.show(lambda: {**schema_json(call, it), **tags_json(call, it)})


@route("GET", "/subjects/{subject}/versions/{version}/schema", SubjectRight.READ)
async def get_text(call: Call) -> Any:
    it = _version(call, call.flag("deleted"))
    return await call.show(lambda: PlainText(text_of(call, it)))


@route("GET", "/subjects/{subject}/versions/{version}/referencedby", SubjectRight.READ)
async def get_referrers(call: Call) -> Any:
    it = _version(call, True)
    every = lookups.referrers(call.machine, it.subject, it.version, call.flag("deleted"))
    found = [each for each in every if call.rights.sees(each.subject)]
    return call.page([schema_id for _, schema_id in sorted({(context_of(each.subject), each.id) for each in found})])


@route("POST", "/subjects/{subject}/versions/{version}/tags", SubjectRight.REGISTER)
async def change_tags(call: Call) -> Any:
    body = await call.body()
    subject = normal(call.params["subject"])
    it = _version(call, False)
    new_version = body.get("newVersion")
    before = lookups.get(call.machine, subject, new_version - 1) if isinstance(new_version, int) else None
    draft = retagged(body, it, before or lookups.latest(call.machine, subject))
    made = await call.submit(Register(subject, draft))
    return await call.show(lambda: registered_json(call, made))


@route("DELETE", "/subjects/{subject}/versions/{version}", SubjectRight.DELETE)
async def delete_version(call: Call) -> Any:
    version = version_number(call.params["version"])
    return await call.submit(DeleteVersion(normal(call.params["subject"]), version, call.flag("permanent")))


def _version(call: Call, deleted: bool) -> SubjectVersion:
    subject, version = normal(call.params["subject"]), version_number(call.params["version"])
    found = lookups.get_anywhere(call.machine, subject, version, deleted)
    if found is None:
        raise (
            version_not_found(version) if lookups.exists(call.machine, subject, deleted) else subject_not_found(subject)
        )
    return found
