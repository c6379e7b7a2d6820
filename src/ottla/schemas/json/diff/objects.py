"""Differences between two schemas of objects; patterns are a part of their content model."""

from __future__ import annotations

from ottla.schemas.json.diff import bounds, content_model, unevaluated
from ottla.schemas.json.diff.content_model import ContentModel
from ottla.schemas.json.diff.context import DiffContext, Steps
from ottla.schemas.json.diff.order import hash_order, map_order
from ottla.schemas.json.diff.unevaluated import Compare
from ottla.schemas.json.nodes import Anything, JsonNode, ObjectNode


def compare(context: DiffContext, original: ObjectNode, update: ObjectNode, inside: Compare) -> Steps:
    with context.at("required"):
        _compare_required(context, original, update)
    with context.at("properties"):
        for name in hash_order(original.properties, update.properties):
            with context.at(name):
                yield from _compare_property(context, name, original, update, inside)
    with context.at("dependencies"):
        yield from _compare_dependencies(context, original, update, inside)
    with context.at("additionalProperties"):
        yield from content_model.compare(context, "ADDITIONAL_PROPERTIES", original, update, inside)
    with context.at("unevaluatedProperties"):
        yield from unevaluated.compare(
            context, "UNEVALUATED_PROPERTIES", original.unevaluated, update.unevaluated, inside
        )
    bounds.compare(context, "maxProperties", "MAX_PROPERTIES", original.max_properties, update.max_properties)
    bounds.compare(context, "minProperties", "MIN_PROPERTIES", original.min_properties, update.min_properties)


def _compare_required(context: DiffContext, original: ObjectNode, update: ObjectNode) -> None:
    for name in map_order(original.properties):
        if name not in update.properties or (name in original.required) == (name in update.required):
            continue
        if name in original.required:
            context.add("REQUIRED_ATTRIBUTE_REMOVED", name)
        elif update.properties[name].has_default:
            context.add("REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", name)
        else:
            context.add("REQUIRED_ATTRIBUTE_ADDED", name)


def _compare_property(
    context: DiffContext, name: str, original: ObjectNode, update: ObjectNode, inside: Compare
) -> Steps:
    before, after = original.properties.get(name), update.properties.get(name)
    if before is not None and after is not None:
        yield from inside(context, before, after)
    elif before is not None:
        yield from content_model.removed(context, "PROPERTY", before, _content_model(context, update, name), inside)
    elif after is not None:
        yield from _added(context, name, after, original, update, inside)


def _added(
    context: DiffContext, name: str, after: JsonNode, original: ObjectNode, update: ObjectNode, inside: Compare
) -> Steps:
    need = "OPTIONAL_PROPERTY"
    if name in update.required:
        need = "REQUIRED_PROPERTY_WITH_DEFAULT" if after.has_default else "REQUIRED_PROPERTY"
    before = _content_model(context, original, name)
    if before.is_open:
        what = "PROPERTY_WITH_EMPTY_SCHEMA" if isinstance(after, Anything) else need
        context.add(f"{what}_ADDED_TO_OPEN_CONTENT_MODEL")
        return
    if before.schema is not None:
        covered = "IS" if (yield from content_model.is_covered(context, before.schema, after, inside)) else "NOT"
        context.add(f"PROPERTY_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    context.add(f"{need}_ADDED_TO_UNOPEN_CONTENT_MODEL")


def _content_model(context: DiffContext, record: ObjectNode, name: str) -> ContentModel:
    """Return how `record` treats a property that it does not name."""
    found = content_model.content_model(record)
    if not record.patterns:
        return found
    matching = (node for pattern, node in record.patterns.items() if context.matches(pattern, name))
    return ContentModel(is_open=False, schema=next(matching, found.schema))


def _compare_dependencies(context: DiffContext, original: ObjectNode, update: ObjectNode, inside: Compare) -> Steps:
    for name in hash_order(original.needed_with, update.needed_with):
        before, after = original.needed_with.get(name), update.needed_with.get(name)
        if before == after:
            continue
        if after is None:
            context.add("DEPENDENCY_ARRAY_REMOVED", name)
        elif before is None:
            context.add("DEPENDENCY_ARRAY_ADDED", name)
        elif before < after:
            context.add("DEPENDENCY_ARRAY_EXTENDED", name)
        else:
            context.add("DEPENDENCY_ARRAY_NARROWED" if after < before else "DEPENDENCY_ARRAY_CHANGED", name)
    for name in hash_order(original.schema_with, update.schema_with):
        if name not in update.schema_with:
            context.add("DEPENDENCY_SCHEMA_REMOVED", name)
        elif name not in original.schema_with:
            context.add("DEPENDENCY_SCHEMA_ADDED", name)
        else:
            with context.at(name):
                yield from inside(context, original.schema_with[name], update.schema_with[name])
