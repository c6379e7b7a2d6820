"""The query of a topic's totals: its records counted, and a field of their values summed, by another field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.registry_calls import SubjectEntry
from ottla.console.refusals import WrongInput
from ottla.model import limits

RECORDS = "records"
_NUMBERS = frozenset({"int", "long", "float", "double", "integer", "number"})
_TEXTS = frozenset({"string", "boolean", "enum"})


class ValueFields(NamedTuple):
    """What is known of the values of a topic: whether a schema gives them fields, and the names of fields of texts and
    of numbers.
    """

    is_typed: bool
    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


def fields_of(latest: SubjectEntry | None) -> ValueFields:
    """The fields in the latest schema of a topic's values; None: it has none. Of Protobuf no names are read."""
    if latest is None:
        return ValueFields(is_typed=False)
    try:
        schema = json.loads(latest.text) if latest.kind in ("AVRO", "JSON") else None
    except (ValueError, RecursionError):
        schema = None
    if not isinstance(schema, Mapping):
        return ValueFields(is_typed=True)
    kinds = dict(_avro(schema) if latest.kind == "AVRO" else _json(schema))
    texts = tuple(name for name, kind in kinds.items() if kind in _TEXTS)
    numbers = tuple(name for name, kind in kinds.items() if kind in _NUMBERS)
    most = limits.CONSOLE_TOTALS_FIELDS_MAX
    return ValueFields(True, texts[:most], numbers[:most])


def totals_query(topic: str, fields: ValueFields, by: str, of: str, last: int) -> str:
    """The query in the words of DuckDB. Raises WrongInput for a name that no field can have."""
    named = [f"{_field(by, fields)} as {_name(by)}"] if by else []
    named.append(f"count(*) as {RECORDS}")
    if of:
        value = _field(of, fields)
        named.append(f"sum({value if fields.is_typed else f'try_cast({value} as double)'}) as {_name(sum_name(of))}")
    order = f" group by 1 order by {2 if not of else 3} desc nulls last" if by else ""
    source = f"topic({_text(topic)}, last := {last})"
    return " ".join(("select", ", ".join(named), "from", source)) + order


def sum_name(of: str) -> str:
    """The column of the sum."""
    return f"sum of {of}"


def _field(path: str, fields: ValueFields) -> str:
    """A field of the value; dots lead into what it holds."""
    parts = path.split(".")
    if not all(parts):
        raise WrongInput(f"{path[:40]!r} is no field", "user.country is a field of a field")
    if fields.is_typed:
        return ".".join(("value", *map(_name, parts)))
    if any(each in path for each in ('"', "\\")):
        raise WrongInput(f"{path[:40]!r} is no field of JSON that can be asked for")
    return f"try_cast(value as json)->>{_text('$' + ''.join(map(_step, parts)))}"


def _step(name: str) -> str:
    """A step of a path in JSON."""
    return f'."{name}"'


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _avro(schema: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    listed = schema.get("fields")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("name"), str):
            yield each["name"], _kind(each.get("type"))


def _json(schema: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    listed = schema.get("properties")
    for name, each in listed.items() if isinstance(listed, Mapping) else ():
        if isinstance(each, Mapping):
            yield name, _kind(each.get("type"))


def _kind(declared: object) -> str:
    """The word for a type, also of one that may be null; empty for times, records, arrays and the like."""
    if isinstance(declared, list):
        (declared, *more) = [each for each in declared if each != "null"] or [None]
        return "" if more else _kind(declared)
    if isinstance(declared, Mapping):
        return "" if "logicalType" in declared else _kind(declared.get("type"))
    return declared if isinstance(declared, str) else ""
