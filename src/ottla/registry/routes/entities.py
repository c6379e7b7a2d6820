"""Registered schemas and settings as JSON: Confluent's entities, with its names, in its order, without empty fields."""

from __future__ import annotations

from typing import Any

from ottla.registry.routes.call import Call
from ottla.schemas.avro import AvroSchema
from ottla.schemas.avro.write import to_text
from ottla.schemas.registry.entities import Config, SubjectVersion
from ottla.schemas.registry.names import DEFAULT_CONTEXT, beside, context_of
from ottla.schemas.registry.tags import tags_in


def schema_json(call: Call, it: SubjectVersion) -> dict[str, Any]:
    """Return a version of a subject, in the requested format and with the requested form of references."""
    return {
        "subject": it.subject,
        "version": it.version,
        "id": it.id,
        "guid": it.guid,
        "schemaType": it.type,
        **_references(call, it),
        **_carried(it),
        "schema": text_of(call, it),
        **_state(it),
    }


def schema_string_json(call: Call, it: SubjectVersion, named: bool) -> dict[str, Any]:
    """Return a schema that was requested by its id; `named`: with its subject and version."""
    return {
        **({"subject": it.subject, "version": it.version} if named else {}),
        "guid": it.guid,
        "schemaType": it.type,
        "schema": text_of(call, it),
        **_references(call, it),
        **_carried(it),
        **_state(it),
    }


def registered_json(call: Call, it: SubjectVersion) -> dict[str, Any]:
    """Return the answer to a registration."""
    return {
        "id": it.id,
        "version": it.version,
        "guid": it.guid,
        "schemaType": it.type,
        **_references(call, it),
        **_carried(it),
        "schema": text_of(call, it),
        **_state(it),
    }


def tags_json(call: Call, it: SubjectVersion) -> dict[str, Any]:
    """Return the elements of the schema that have the tags in `findTags` (`*`: any)."""
    wanted = call.query.get("findTags")
    if not wanted:
        return {}
    found = [
        {"schemaEntity": {"entityPath": each.path, "entityType": each.kind}, "tags": list(each.tags)}
        for each in tags_in(call.machine.library.of(it))
        if "*" in wanted or any(tag in wanted for tag in each.tags)
    ]
    return {"schemaTags": found} if found else {}


def config_json(config: Config) -> dict[str, Any]:
    return dict(config)


def changed_config_json(config: Config) -> dict[str, Any]:
    """Return settings under the names with which they are set."""
    return {"compatibility" if name == "compatibilityLevel" else name: value for name, value in config.items()}


def text_of(call: Call, it: SubjectVersion) -> str:
    """Return the text; `format=resolved` inlines an Avro schema's references, `serialized` is Protobuf's own form.

    An unknown format is ignored, so that clients may ask for formats of newer registries.
    """
    wanted = (call.text("format") or "").strip().lower()
    if not wanted:
        return it.text
    parsed = call.machine.library.of(it)
    if isinstance(parsed, AvroSchema):
        return to_text(parsed.schema, ()) if wanted == "resolved" else it.text
    formatted = getattr(parsed, "formatted", None)
    return str(formatted(wanted)) if formatted is not None else it.text


def _references(call: Call, it: SubjectVersion) -> dict[str, Any]:
    if not it.references:
        return {}
    qualified = call.text("referenceFormat") == "qualified" and context_of(it.subject) != DEFAULT_CONTEXT
    return {
        "references": [
            {**each._asdict(), **({"subject": beside(it.subject, each.subject)} if qualified else {})}
            for each in it.references
        ]
    }


def _carried(it: SubjectVersion) -> dict[str, Any]:
    carried: dict[str, Any] = {}
    if it.metadata is not None:
        carried["metadata"] = it.metadata
    if it.rule_set is not None:
        carried["ruleSet"] = it.rule_set
    return carried


def _state(it: SubjectVersion) -> dict[str, Any]:
    return {"ts": it.timestamp_ms, "deleted": it.deleted}
