"""Metadata and rules: JSON that the registry keeps beside a schema, validates, merges, and returns.

Clients interpret them. As in Confluent's registry they are written in one order (tags, properties and names sorted;
empty parts left out), so that equal ones have equal digests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.model.limits import RULE_NAME_CHARS_MAX
from ottla.schemas.registry.refusal import RegistryRefusal, invalid_rules

Json = Mapping[str, Any]

VERSION_PROPERTY = "confluent:version"
_RULE_KINDS = ("migrationRules", "domainRules", "encodingRules")
_RULE_FIELDS = ("name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure", "disabled")
_MODES_OF = {
    "migrationRules": ("UPGRADE", "DOWNGRADE", "UPDOWN"),
    "domainRules": ("WRITE", "READ", "WRITEREAD"),
    "encodingRules": ("WRITE", "READ", "WRITEREAD"),
}
_RULE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class BadForm(ValueError):
    """The JSON does not have the required form."""


def metadata_of(given: Any) -> Json | None:
    """Return metadata in its normal order. Raises BadForm."""
    if given is None:
        return None
    _expect(isinstance(given, dict), "metadata")
    tags, properties, sensitive = (given.get(name) for name in ("tags", "properties", "sensitive"))
    _expect(tags is None or _is_map(tags, _is_texts), "metadata.tags")
    _expect(properties is None or _is_map(properties, _is_scalar), "metadata.properties")
    _expect(sensitive is None or _is_texts(sensitive), "metadata.sensitive")
    return _without_empty(
        {
            "tags": {name: sorted(set(tags[name])) for name in sorted(tags or {})},
            "properties": {name: _plain(properties[name]) for name in sorted(properties or {})},
            "sensitive": sorted(set(sensitive or ())),
        }
    )


def rule_set_of(given: Any) -> Json | None:
    """Return rules in their normal order. Raises BadForm."""
    if given is None:
        return None
    _expect(isinstance(given, dict), "ruleSet")
    rules = {}
    for kind in _RULE_KINDS:
        listed = given.get(kind)
        _expect(listed is None or isinstance(listed, list), f"ruleSet.{kind}")
        rules[kind] = [_rule_of(rule) for rule in listed or ()]
    enable_at = given.get("enableAt")
    _expect(enable_at is None or isinstance(enable_at, str), "ruleSet.enableAt")
    return _without_empty({**rules, "enableAt": enable_at})


def _rule_of(given: Any) -> Json:
    _expect(isinstance(given, dict), "rule")
    rule: dict[str, Any] = {}
    for name in _RULE_FIELDS:
        value = given.get(name)
        if name == "disabled":
            _expect(value is None or isinstance(value, bool), "rule.disabled")
            rule[name] = bool(value)
        elif name == "tags":
            _expect(value is None or _is_texts(value), "rule.tags")
            rule[name] = sorted(set(value or ()))
        elif name == "params":
            _expect(value is None or _is_map(value, _is_scalar), "rule.params")
            rule[name] = {key: _plain(value[key]) for key in sorted(value or {})}
        else:
            _expect(value is None or isinstance(value, str), f"rule.{name}")
            rule[name] = value
    rule["kind"], rule["mode"] = rule["kind"] or "TRANSFORM", rule["mode"] or "WRITEREAD"
    _expect(rule["kind"] in ("TRANSFORM", "CONDITION"), "rule.kind")
    _expect(any(rule["mode"] in modes for modes in _MODES_OF.values()), "rule.mode")
    return _without_empty(rule)


def check_rules(rule_set: Json | None) -> None:
    """Raise RegistryRefusal unless every rule has a unique name, a type, and a mode that fits."""
    names: set[str] = set()
    for kind, modes in _MODES_OF.items():
        for rule in (rule_set or {}).get(kind, ()):
            name = rule.get("name")
            if name is None:
                raise _bad_rule("Missing rule name")
            if len(name) > RULE_NAME_CHARS_MAX or not _RULE_NAME.fullmatch(name):
                raise _bad_rule(f"Invalid rule name '{name}'")
            if name in names:
                raise _bad_rule(f"Found rule with duplicate name '{name}'")
            names.add(name)
            if rule.get("type") is None:
                raise _bad_rule("Missing rule type")
            if rule["mode"] not in modes:
                raise _bad_rule(f"{kind.removesuffix('Rules').capitalize()} rules can only be {', '.join(modes)}")


def _bad_rule(message: str) -> RegistryRefusal:
    return invalid_rules(message)


def merged_metadata(older: Json | None, newer: Json | None) -> Json | None:
    """Merge metadata; where both have a value, the newer one counts."""
    if older is None or newer is None:
        return newer if older is None else older
    return metadata_of(
        {
            "tags": {**older.get("tags", {}), **newer.get("tags", {})},
            "properties": {**older.get("properties", {}), **newer.get("properties", {})},
            "sensitive": [*older.get("sensitive", ()), *newer.get("sensitive", ())],
        }
    )


def merged_rules(older: Json | None, newer: Json | None) -> Json | None:
    """Merge rules; a newer rule replaces the older one of the same name."""
    if older is None or newer is None:
        return newer if older is None else older
    rules = {kind: _merged(older.get(kind, ()), newer.get(kind, ())) for kind in _RULE_KINDS}
    return _without_empty({**rules, "enableAt": newer.get("enableAt") or older.get("enableAt")})


def _merged(older: Sequence[Json], newer: Sequence[Json]) -> list[Json]:
    names = {rule.get("name") for rule in newer}
    return [*(rule for rule in older if rule.get("name") not in names), *newer]


def without_rules(rules: Json | None, names: Sequence[str]) -> Json | None:
    if rules is None:
        return None
    kept = {kind: [rule for rule in rules.get(kind, ()) if rule.get("name") not in names] for kind in _RULE_KINDS}
    return _without_empty({**rules, **kept})


def property_of(metadata: Json | None, name: str) -> str | None:
    value: str | None = ((metadata or {}).get("properties") or {}).get(name)
    return value


def with_version(metadata: Json | None, version: int) -> Json | None:
    return merged_metadata(metadata, {"properties": {VERSION_PROPERTY: str(version)}})


def without_version(metadata: Json | None) -> Json:
    properties = {k: v for k, v in ((metadata or {}).get("properties") or {}).items() if k != VERSION_PROPERTY}
    return metadata_of({**(metadata or {}), "properties": properties}) or {}


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise BadForm(f"{what} is not of the expected form")


def _is_map(value: Any, of: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) and of(each) for key, each in value.items())


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _plain(value: Any) -> str:
    """Return a number or boolean as text where text is required, as Jackson does."""
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None and value not in ("", [], {})}
