"""Schemas to register: a record that grows field by field."""

from __future__ import annotations

import json
from typing import Any


def record(*fields: str | dict[str, Any], name: str = "Order", **more: Any) -> str:
    """An Avro record; a field is a name (of an int), or the whole of it."""
    listed = [{"name": field, "type": "int"} if isinstance(field, str) else field for field in fields]
    return json.dumps({"type": "record", "name": name, "fields": listed, **more}, separators=(",", ":"))


def optional(name: str, default: Any = 0, of: str = "int") -> dict[str, Any]:
    return {"name": name, "type": of, "default": default}


ONE = record("a")
# Reads ONE, and is read by it.
TWO = record("a", optional("b"))
# Reads both, and is read by both.
THREE = record("a", optional("b"), optional("c"))
# Does not read ONE: `d` has no default. Is read by it.
STRICT = record("a", "d")
# Reads ONE, but is not read by it: `a` is gone.
LOOSE = record(optional("e"))
