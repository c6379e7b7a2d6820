"""The bodies of requests: schemas and settings, read from JSON and validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.model.limits import INT32_MAX
from ottla.registry.errors import BadRequest
from ottla.schemas.compatibility import Level
from ottla.schemas.registry.entities import CONFIG_FIELDS, Mode, SchemaDraft, SubjectVersion, Tagged
from ottla.schemas.registry.metadata_and_rules import (
    BadForm,
    check_rules,
    merged_rules,
    metadata_of,
    rule_set_of,
    with_version,
    without_rules,
)
from ottla.schemas.registry.names import is_valid
from ottla.schemas.registry.refusal import invalid_level, invalid_mode, invalid_rules, invalid_schema, invalid_subject
from ottla.schemas.schema import Reference

_FLAGS = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_POLICIES = ("STRICT", "LENIENT", "LOGICAL")


def draft_of(body: Mapping[str, Any]) -> SchemaDraft:
    """Read a schema to register, look up or check. Raises BadRequest, RegistryRefusal."""
    try:
        metadata, rule_set = metadata_of(body.get("metadata")), rule_set_of(body.get("ruleSet"))
    except BadForm as error:
        raise BadRequest(400, str(error)) from None
    check_rules(rule_set)
    return SchemaDraft(
        _text(body, "schema"),
        _text(body, "schemaType"),
        _references(body.get("references")),
        metadata,
        rule_set,
        _number(body, "id", -1),
        _number(body, "version", 0),
        tagged_of(body.get("schemaTagsToAdd")),
        tagged_of(body.get("schemaTagsToRemove")),
        body.get("propagateSchemaTags") is True,
    )


def tagged_of(given: Any) -> tuple[Tagged, ...]:
    """Read paths in a schema, and tags for each. Raises BadRequest."""
    try:
        found = tuple(
            Tagged(each["schemaEntity"]["entityPath"], each["schemaEntity"]["entityType"].lower(), tuple(each["tags"]))
            for each in given or ()
        )
    except (TypeError, KeyError, AttributeError):
        raise BadRequest(400, "schema tags are not of the expected form") from None
    if not all(isinstance(text, str) for each in found for text in (each.path, *each.tags)):
        raise BadRequest(400, "schema tags are not of the expected form")
    return found


def retagged(body: Mapping[str, Any], it: SubjectVersion, before: SubjectVersion | None) -> SchemaDraft:
    """Return a version with changed tags, metadata or rules, to be registered as the next one. Raises BadRequest,
    RegistryRefusal.
    """
    new_version = _number(body, "newVersion", 0)
    try:
        metadata, rules = metadata_of(body.get("metadata")), rule_set_of(body.get("ruleSet"))
        merged = rule_set_of(body.get("rulesToMerge"))
    except BadForm as error:
        raise BadRequest(400, str(error)) from None
    removed = body.get("rulesToRemove")
    if removed is not None and not (isinstance(removed, list) and all(isinstance(name, str) for name in removed)):
        raise BadRequest(400, "rulesToRemove is not a list of names")
    if merged is not None or removed is not None:
        if rules is not None:
            raise invalid_rules("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
        rules = without_rules(merged_rules(None if before is None else before.rule_set, merged), removed or ())
    check_rules(rules)
    return SchemaDraft(
        it.text,
        it.type,
        it.references,
        with_version(metadata or it.metadata, new_version),
        rules,
        version=new_version,
        tags_added=tagged_of(body.get("tagsToAdd")),
        tags_removed=tagged_of(body.get("tagsToRemove")),
    )


def changes_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Read settings to change. `compatibility` is the name for setting the level; its other name is accepted too."""
    changes: dict[str, Any] = {}
    for name in CONFIG_FIELDS:
        given = "compatibility" if name == "compatibilityLevel" and "compatibility" in body else name
        if given in body:
            changes[name] = _setting(name, body[given])
    return changes


def _setting(name: str, value: Any) -> Any:
    if value is None:
        return None
    try:
        if name in ("defaultMetadata", "overrideMetadata"):
            return metadata_of(value)
        if name in ("defaultRuleSet", "overrideRuleSet"):
            rules = rule_set_of(value)
            check_rules(rules)
            return rules
    except BadForm as error:
        raise BadRequest(400, str(error)) from None
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise BadRequest(400, f"{name} is not true or false")
        return value
    if not isinstance(value, str):
        raise BadRequest(400, f"{name} is not a text")
    if name == "compatibilityLevel":
        return _level(value)
    if name == "compatibilityPolicy":
        if value.upper() not in _POLICIES:
            raise BadRequest(400, f"compatibilityPolicy is none of {', '.join(_POLICIES)}")
        return value.upper()
    if name in ("alias", "aliasForDeks") and value and not is_valid(value):
        raise invalid_subject(value)
    return value or None


def _level(value: str) -> str:
    try:
        return Level(value.upper()).value
    except ValueError:
        raise invalid_level(
            "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive,"
            " forward_transitive, and full_transitive"
        ) from None


def mode_of(body: Mapping[str, Any]) -> Mode | None:
    given = body.get("mode")
    if given is None:
        return None
    try:
        return Mode(str(given).upper())
    except ValueError:
        raise invalid_mode("Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.") from None


def _references(given: Any) -> tuple[Reference, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise BadRequest(400, "references is not a list of references")
    return tuple(_reference(each) for each in given)


def _reference(given: dict[str, Any]) -> Reference:
    name, subject = _text(given, "name"), _text(given, "subject")
    version = _number(given, "version", 0)
    if name is None or subject is None or (version <= 0 and version != -1):
        shown = f"{{name='{name}', subject='{subject}', version={given.get('version')}}}"
        raise invalid_schema(f"Invalid schema, details: Invalid reference: {shown}")
    return Reference(name, subject, version)


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRequest(400, f"{name} is not a text")
    return value


def _number(body: Mapping[str, Any], name: str, default: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > INT32_MAX:
        raise BadRequest(400, f"{name} is not a 32-bit number")
    return value
