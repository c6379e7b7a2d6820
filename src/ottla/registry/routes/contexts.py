"""/contexts: listing them, and deleting one."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from ottla.registry.routes.call import Call
from ottla.registry.routes.table import route
from ottla.registry.security.subject_rights import SubjectRight
from ottla.schemas.registry.commands import DeleteContext
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.names import DEFAULT_CONTEXT, context_of


@route("GET", "/contexts", SubjectRight.AUTHENTICATED)
async def list_contexts(call: Call) -> Any:
    prefix = call.text("contextPrefix") or ""
    found = [each for each in call.machine.state.contexts_in_use() if each.startswith(prefix)]
    if call.rights.are_limited:
        seen = await call.in_thread(lambda machine: _contexts_seen(call, machine))
        found = [each for each in found if each in seen]
    return call.page(found)


def _contexts_seen(call: Call, machine: RegistryMachine) -> set[str]:
    """Return the default context, and those with a subject that the client may see."""
    subjects = machine.state.subjects
    return {DEFAULT_CONTEXT, *(context_of(subject) for subject in subjects if call.rights.sees(subject))}


@route("DELETE", "/contexts/{context}", SubjectRight.ADMINISTER)
async def delete_context(call: Call) -> Any:
    await call.submit(DeleteContext(context_of(call.params["context"])))
    return Response(status_code=204)
