"""`unevaluatedProperties` and `unevaluatedItems` of JSON Schema: what they apply to, within a bound of work.

They apply to the properties and items that no other keyword applies to: not beside them, and not in schemas that hold
for the same value (`$ref`, `allOf`, `if` and so on). `jsonschema` finds these with Python's regular expressions, which
may backtrack without an end, and does work that nobody counts. `$recursiveRef` for the same value never ends, so it
is not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

# So many entries of a list or an object cost one step.
_ENTRIES_PER_STEP = 16
_SHOWN = 3


class _Resolved(Protocol):
    contents: object
    resolver: _Resolver


class _Resolver(Protocol):
    def lookup(self, ref: str) -> _Resolved: ...


class JsonValidator(Protocol):
    """What is used of a validator of `jsonschema`: it knows the resource in which its references are looked up."""

    VALIDATORS: Mapping[str, object]
    _resolver: _Resolver

    def descend(
        self, instance: object, schema: object, path: str | None = None, schema_path: str | None = None
    ) -> Iterator[Exception]: ...
    def evolve(self, *, schema: object, _resolver: _Resolver) -> JsonValidator: ...


class Unevaluated:
    """`spend` counts steps of work, and raises what ends the check; `matches` says whether a name matches a pattern."""

    def __init__(self, spend: Callable[[int], None], matches: Callable[[str, str], bool]) -> None:
        self._spend = spend
        self._matches = matches

    def properties(
        self, validator: JsonValidator, wanted: object, instance: object, schema: object
    ) -> Iterator[Exception]:
        """Yield the errors of the keyword `unevaluatedProperties`."""
        if not isinstance(instance, dict):
            return
        known = self._names(validator, instance, schema, is_inner=False)
        bad = [name for name, value in instance.items() if name not in known and not _holds(validator, wanted, value)]
        yield from _told("properties", bad)

    def items(self, validator: JsonValidator, wanted: object, instance: object, schema: object) -> Iterator[Exception]:
        """Yield the errors of the keyword `unevaluatedItems`."""
        if not isinstance(instance, list):
            return
        known = self._indexes(validator, instance, schema, is_inner=False)
        bad = [item for at, item in enumerate(instance) if at not in known and not _holds(validator, wanted, item)]
        yield from _told("items", bad)

    def _names(
        self, validator: JsonValidator, instance: dict[str, object], schema: object, *, is_inner: bool = True
    ) -> set[str]:
        """Return the names to which keywords of a schema apply; of one inside another, also its `unevaluated…`."""
        self._spend(1 + len(instance) // _ENTRIES_PER_STEP)
        if not isinstance(schema, dict):
            return set()
        if "additionalProperties" in schema or (is_inner and "unevaluatedProperties" in schema):
            return set(instance)
        found: set[str] = schema.get("properties", {}).keys() & instance.keys()
        patterns = schema.get("patternProperties", {})
        found |= {name for name in instance if any(self._matches(pattern, name) for pattern in patterns)}
        for inner, part in self._in_place(validator, instance, schema):
            found |= self._names(inner, instance, part)
        return found

    def _indexes(
        self, validator: JsonValidator, instance: list[object], schema: object, *, is_inner: bool = True
    ) -> set[int]:
        self._spend(1 + len(instance) // _ENTRIES_PER_STEP)
        if not isinstance(schema, dict):
            return set()
        first, rest = (
            ("prefixItems", "items") if "prefixItems" in validator.VALIDATORS else ("items", "additionalItems")
        )
        is_list = isinstance(schema.get(first), list)
        has_rest = rest in schema if is_list or first == "prefixItems" else first in schema
        if has_rest or (is_inner and "unevaluatedItems" in schema):
            return set(range(len(instance)))
        found = set(range(min(len(schema[first]), len(instance)))) if is_list else set()
        if "contains" in schema:
            found |= {at for at, item in enumerate(instance) if _holds(validator, schema["contains"], item)}
        for inner, part in self._in_place(validator, instance, schema):
            found |= self._indexes(inner, instance, part)
        return found

    def _in_place(
        self, validator: JsonValidator, instance: object, schema: dict[str, Any]
    ) -> Iterator[tuple[JsonValidator, object]]:
        """Yield the schemas inside a schema that hold for the same value, each with a validator for its references."""
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema:
                yield _resolved(validator, validator._resolver.lookup(schema[keyword]))
        for keyword in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(keyword, ()):
                if _holds(validator, part, instance):
                    yield validator, part
        if "if" in schema:
            is_so = _holds(validator, schema["if"], instance)
            if is_so:
                yield validator, schema["if"]
            yield validator, schema.get("then" if is_so else "else")
        if isinstance(instance, dict):
            dependent = schema.get("dependentSchemas", {})
            self._spend(len(dependent) // _ENTRIES_PER_STEP)
            yield from ((validator, part) for name, part in dependent.items() if name in instance)


def _resolved(validator: JsonValidator, found: _Resolved) -> tuple[JsonValidator, object]:
    return validator.evolve(schema=found.contents, _resolver=found.resolver), found.contents


def _holds(validator: JsonValidator, schema: object, instance: object) -> bool:
    return next(validator.descend(instance, schema), None) is None


def _told(what: str, bad: list[object]) -> Iterator[Exception]:
    from jsonschema.exceptions import ValidationError

    if bad:
        yield ValidationError(f"Unevaluated {what} are not allowed: {', '.join(map(repr, bad[:_SHOWN]))}")
