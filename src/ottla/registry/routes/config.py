"""/config: settings of the registry as a whole, of a context (`:.context:`), of a subject."""

from __future__ import annotations

from typing import Any

from ottla.registry.routes.bodies import changes_of
from ottla.registry.routes.call import Call
from ottla.registry.routes.entities import changed_config_json, config_json
from ottla.registry.routes.table import route
from ottla.registry.security.subject_rights import SubjectRight
from ottla.schemas.registry.commands import DeleteConfig, SetConfig
from ottla.schemas.registry.names import is_valid, normal
from ottla.schemas.registry.refusal import invalid_subject, no_level


@route("GET", "/config", SubjectRight.READ_SETTINGS)
@route("GET", "/config/{subject}", SubjectRight.READ_SETTINGS)
async def get_config(call: Call) -> Any:
    subject, scope = setting_of(call), call.machine.scope
    config = scope.config(subject) if call.flag("defaultToGlobal") else scope.own_config(subject)
    if config is None:
        raise no_level(subject)
    return config_json(config)


@route("PUT", "/config", SubjectRight.CHANGE_SETTINGS)
@route("PUT", "/config/{subject}", SubjectRight.CHANGE_SETTINGS)
async def put_config(call: Call) -> Any:
    changes = changes_of(await call.body())
    return changed_config_json(await call.submit(SetConfig(settable(call), changes)))


@route("DELETE", "/config", SubjectRight.CHANGE_SETTINGS)
@route("DELETE", "/config/{subject}", SubjectRight.CHANGE_SETTINGS)
async def delete_config(call: Call) -> Any:
    return config_json(await call.submit(DeleteConfig(setting_of(call))))


def setting_of(call: Call) -> str | None:
    """Return the subject or context of a setting; None, the registry as a whole, for the default context and for no
    name.
    """
    return normal(call.params.get("subject", "")) or None


def settable(call: Call) -> str | None:
    given = call.params.get("subject", "")
    if not is_valid(given, for_settings=True):
        raise invalid_subject(given)
    return setting_of(call)
