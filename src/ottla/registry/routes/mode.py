"""/mode: the mode of the registry as a whole, of a context (`:.context:`), of a subject."""

from __future__ import annotations

from typing import Any

from ottla.registry.routes.bodies import mode_of
from ottla.registry.routes.call import Call
from ottla.registry.routes.config import settable, setting_of
from ottla.registry.routes.table import route
from ottla.registry.security.subject_rights import SubjectRight
from ottla.schemas.registry.commands import DeleteMode, SetMode
from ottla.schemas.registry.entities import Mode
from ottla.schemas.registry.names import GLOBAL_CONTEXT, prefix_of
from ottla.schemas.registry.refusal import invalid_mode, no_mode


@route("GET", "/mode", SubjectRight.READ_SETTINGS)
@route("GET", "/mode/{subject}", SubjectRight.READ_SETTINGS)
async def get_mode(call: Call) -> Any:
    subject, scope = setting_of(call), call.machine.scope
    mode = scope.mode(subject) if call.flag("defaultToGlobal") else scope.own_mode(subject)
    if mode is None:
        raise no_mode(subject)
    return {"mode": mode}


@route("PUT", "/mode", SubjectRight.CHANGE_SETTINGS)
@route("PUT", "/mode/{subject}", SubjectRight.CHANGE_SETTINGS)
async def put_mode(call: Call) -> Any:
    mode, subject = mode_of(await call.body()), settable(call)
    if mode is Mode.FORWARD and subject != prefix_of(GLOBAL_CONTEXT):
        raise invalid_mode("Forward mode only supported on global level")
    if mode is Mode.IMPORT:
        call.rights.check_import()
    await call.submit(SetMode(subject, mode, call.flag("force")))
    return {"mode": mode}


@route("DELETE", "/mode", SubjectRight.CHANGE_SETTINGS)
@route("DELETE", "/mode/{subject}", SubjectRight.CHANGE_SETTINGS)
async def delete_mode(call: Call) -> Any:
    before = await call.submit(DeleteMode(setting_of(call), call.flag("recursive")))
    return {} if before is None else {"mode": before}
