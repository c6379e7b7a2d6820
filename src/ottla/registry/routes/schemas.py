"""/schemas: all schemas, and schemas by their id or their GUID."""

from __future__ import annotations

from typing import Any

from ottla.model.limits import REGISTRY_SCHEMAS_AT_ONCE
from ottla.registry.routes.call import Call, EncodedAnswer, PlainText, number
from ottla.registry.routes.entities import schema_json, schema_string_json, tags_json, text_of
from ottla.registry.routes.table import route
from ottla.registry.security.subject_rights import SubjectRight
from ottla.schemas.registry import lookups
from ottla.schemas.registry.entities import SubjectVersion
from ottla.schemas.registry.names import context_of, split
from ottla.schemas.registry.refusal import schema_not_found
from ottla.schemas.registry.searches import aliases_of, schemas_like
from ottla.schemas.registry.state import RegistryState
from ottla.schemas.schema import SchemaType


@route("GET", "/schemas", SubjectRight.AUTHENTICATED)
async def list_schemas(call: Call) -> Any:
    state = call.machine.state
    if len(state.subjects) + sum(map(len, state.subjects.values())) <= REGISTRY_SCHEMAS_AT_ONCE:
        return await call.show(lambda: _listed(call, state))
    return await call.in_thread(lambda machine: EncodedAnswer.rows(_listed(call, machine.state)))


def _listed(call: Call, state: RegistryState) -> list[dict[str, Any]]:
    every = schemas_like(
        state,
        call.text("subjectPrefix") or "",
        deleted=call.flag("deleted"),
        latest_only=call.flag("latestOnly"),
        rule_type=call.text("ruleType") or "",
        with_aliased=call.flag("aliases"),
    )
    found = [it for it in every if call.rights.sees(it.subject)]
    aliases = _aliases(call, state) if call.flag("aliases") else {}
    return [
        {**schema_json(call, it), **({"aliases": aliases[it.subject]} if it.subject in aliases else {})}
        for it in call.page(found)
    ]


def _aliases(call: Call, state: RegistryState) -> dict[str, list[str]]:
    return {
        subject: seen
        for subject, names in aliases_of(state).items()
        if (seen := [name for name in names if call.rights.sees(name)])
    }


@route("GET", "/schemas/types", SubjectRight.AUTHENTICATED)
async def list_types(call: Call) -> Any:
    return [SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO]


@route("GET", "/schemas/ids/{id}", SubjectRight.AUTHENTICATED)
async def get_by_id(call: Call) -> Any:
    it = _with_id(call)
    answer = await call.show(
        lambda: {**schema_string_json(call, it, named=_names_subject(call)), **tags_json(call, it)}
    )
    if call.flag("fetchMaxId"):
        answer["maxId"] = max(it.id, call.machine.state.highest.get(context_of(it.subject), 0))
    return answer


@route("GET", "/schemas/ids/{id}/schema", SubjectRight.AUTHENTICATED)
async def get_text_by_id(call: Call) -> Any:
    it = _with_id(call)
    return await call.show(lambda: PlainText(text_of(call, it)))


@route("GET", "/schemas/ids/{id}/subjects", SubjectRight.AUTHENTICATED)
async def get_subjects_by_id(call: Call) -> Any:
    return call.page([it.subject for it in _versions_with_id(call)])


@route("GET", "/schemas/ids/{id}/versions", SubjectRight.AUTHENTICATED)
async def get_versions_by_id(call: Call) -> Any:
    return call.page([{"subject": it.subject, "version": it.version} for it in _versions_with_id(call)])


@route("GET", "/schemas/guids/{guid}", SubjectRight.AUTHENTICATED)
async def get_by_guid(call: Call) -> Any:
    found = _with_guid(call)
    if not found:
        raise schema_not_found(call.params["guid"])
    return await call.show(lambda: schema_string_json(call, found[0][1], named=False))


@route("GET", "/schemas/guids/{guid}/ids", SubjectRight.AUTHENTICATED)
async def get_ids_by_guid(call: Call) -> Any:
    return [{"context": context, "id": it.id} for context, it in _with_guid(call)]


def _with_guid(call: Call) -> list[tuple[str, SubjectVersion]]:
    return lookups.with_guid(call.machine, call.params["guid"], lambda it: call.rights.sees(it.subject))


def _with_id(call: Call) -> SubjectVersion:
    """Return a schema with the id, under a subject that the client may see; for others it does not exist."""
    schema_id = number(call.params["id"])
    it = lookups.with_id(call.machine, schema_id, call.text("subject"))
    if it is not None and not call.rights.sees(it.subject):
        same = call.machine.state.with_id(context_of(it.subject), schema_id)
        it = min((each for each in same if call.rights.sees(each.subject)), key=lambda each: each.deleted, default=None)
    if it is None:
        raise schema_not_found(schema_id)
    return it


def _versions_with_id(call: Call) -> list[SubjectVersion]:
    schema_id = number(call.params["id"])
    found = lookups.versions_with_id(call.machine, schema_id, call.text("subject"), deleted=True)
    seen = [it for it in found or () if call.rights.sees(it.subject)]
    if not seen:
        raise schema_not_found()
    return [it for it in seen if call.flag("deleted") or not it.deleted]


def _names_subject(call: Call) -> bool:
    return split(call.text("subject")).written != ""
