"""/contexts: listing them, and deleting one."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from ottla.registry.routes.call import Call
from ottla.registry.routes.table import route
from ottla.schemas.registry.commands import DeleteContext
from ottla.schemas.registry.names import context_of


@route("GET", "/contexts")
async def list_contexts(call: Call) -> Any:
    prefix = call.text("contextPrefix") or ""
    return call.page([each for each in call.machine.state.contexts_in_use() if each.startswith(prefix)])


@route("DELETE", "/contexts/{context}")
async def delete_context(call: Call) -> Any:
    await call.submit(DeleteContext(context_of(call.params["context"])))
    return Response(status_code=204)
