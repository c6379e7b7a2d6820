"""Names of types, fields and symbols: their syntax, and how a namespace completes them."""

from __future__ import annotations

import re

from ottla.model.limits import SCHEMA_NAME_CHARS_MAX
from ottla.schemas.avro.types import PRIMITIVES, AvroName
from ottla.schemas.schema import InvalidSchema

_STRICT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_name(name: str | None, where: str, *, strict: bool) -> str:
    """Check a simple name. Letters of any script are accepted unless `strict` (the specification allows ASCII only)."""
    if name is None:
        raise InvalidSchema(f"Null name at {where}")
    if not name:
        raise InvalidSchema(f"Empty name at {where}")
    if _STRICT.fullmatch(name):
        return name
    if not (_STRICT.fullmatch(name[0]) or (not strict and name[0].isalpha())):
        raise InvalidSchema(f"Illegal initial character: {name} at {where}")
    if strict or not all(char == "_" or char.isalnum() for char in name):
        raise InvalidSchema(f"Illegal character in: {name} at {where}")
    return name


def make_name(name: str, space: str | None, where: str, *, strict: bool) -> AvroName:
    """Return a type's name; a name with dots includes its namespace."""
    if "." in name:
        space, _, name = name.rpartition(".")
    if len(name) + len(space or "") > SCHEMA_NAME_CHARS_MAX:
        raise InvalidSchema(f"A name has more than {SCHEMA_NAME_CHARS_MAX} characters at {where}")
    return AvroName(check_name(name, where, strict=strict), space or None)


def check_type_name(name: AvroName, where: str, *, strict: bool) -> None:
    """Check the rules that only the name of a defined type has to obey."""
    if name.full in PRIMITIVES:
        raise InvalidSchema(f"Schemas may not be named after primitives: {name.full} at {where}")
    if strict and name.space is not None:
        for part in name.space.split("."):
            check_name(part, f"{where}, namespace {name.space}", strict=True)
