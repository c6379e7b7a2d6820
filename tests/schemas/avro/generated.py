"""Avro schemas that Hypothesis draws: from few names, so that two of them often have something in common."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
RECORDS = ["R", "S", "ns.R", "ns.deep.T"]
ENUMS = ["E", "ns.E"]
FIXEDS = ["F", "ns.F"]
FIELDS = ["a", "b", "c", "d"]
SYMBOLS = ["X", "Y", "Z"]

Json = Any


def defaults(schema: Json) -> st.SearchStrategy[Json] | None:
    """Values that fit a type, or None where it is not worth the trouble."""
    if isinstance(schema, list):
        return defaults(schema[0]) if schema else None
    name = schema["type"] if isinstance(schema, dict) else schema
    simple: dict[str, st.SearchStrategy[Json]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(1 << 31), (1 << 31) - 1),
        "long": st.integers(-(1 << 63), (1 << 63) - 1),
        "float": st.sampled_from([0, 1, 1.5, -2.25, 1e10, 3.0e-5]),
        # Not every double: Javas before 19 print some of them with a digit too many.
        "double": st.floats(-60000, 60000, width=16) | st.sampled_from([1e10, 1.5e300, 12345678.25, 1e-3, 9.5e-4, 1e7]),
        "bytes": st.sampled_from(["", "ÿ", "abc"]),
        "string": st.text(st.characters(codec="utf-8"), max_size=5),
    }
    if name in simple:
        return simple[name]
    if name == "enum":
        return st.sampled_from(schema["symbols"])
    if name in ("array", "map"):
        return st.just([] if name == "array" else {})
    return None


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Json:
    """A schema as JSON; names are used again once they are defined."""
    return _draw_schema(draw, depth, set(), "")


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _draw_schema(draw: st.DrawFn, depth: int, defined: set[str], space: str, *, union: bool = True) -> Json:
    kinds = ["primitive"] * 3 + ["named"] * bool(defined)
    if depth > 0:
        kinds += ["array", "map", "record", "record", "enum", "fixed"] + ["union", "union"] * union
    kind = draw(st.sampled_from(kinds))
    if kind == "primitive":
        name = draw(st.sampled_from(PRIMITIVES))
        return draw(st.sampled_from([name, name, {"type": name}, {"type": name, "p": [1, {"q": None}]}]))
    if kind == "named":
        return draw(st.sampled_from(sorted(defined)))
    if kind == "array":
        return {"type": "array", "items": _draw_schema(draw, depth - 1, defined, space), "doc": "dropped"}
    if kind == "map":
        return {"type": "map", "values": _draw_schema(draw, depth - 1, defined, space)}
    if kind == "union":
        return _draw_union(draw, depth, defined, space)
    return _draw_named(draw, kind, depth, defined, space)


def _draw_union(draw: st.DrawFn, depth: int, defined: set[str], space: str) -> Json:
    branches: list[Json] = []
    taken = set()
    for _ in range(draw(st.integers(1, 3))):
        branch = _draw_schema(draw, depth - 1, defined, space, union=False)
        name = branch if isinstance(branch, str) else branch["type"]
        if isinstance(branch, dict) and "name" in branch:
            name = _full(branch["name"], branch.get("namespace", space))
        if name not in taken:
            taken.add(name)
            branches.append(branch)
    return branches


def _draw_named(draw: st.DrawFn, kind: str, depth: int, defined: set[str], space: str) -> Json:
    pool = {"record": RECORDS, "enum": ENUMS, "fixed": FIXEDS}[kind]
    free = [name for name in pool if _full(name, space) not in defined]
    if not free:
        return "string"
    name = draw(st.sampled_from(free))
    full = _full(name, space)
    inner = full.rpartition(".")[0]
    tree: dict[str, Json] = {"type": kind, "name": name}
    if kind == "enum":
        tree["symbols"] = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True))
        if draw(st.booleans()):
            tree["default"] = tree["symbols"][0]
    elif kind == "fixed":
        tree["size"] = draw(st.integers(0, 3))
    else:
        tree["fields"] = [
            _draw_field(draw, field, depth, defined | {full}, inner)
            for field in draw(st.lists(st.sampled_from(FIELDS), max_size=3, unique=True))
        ]
    if draw(st.booleans()):
        tree |= draw(st.sampled_from([{"doc": "said"}, {"doc": ""}, {"x": 1.0, "a": {"z": 1, "b": 2}}]))
    if draw(st.booleans()):
        tree["aliases"] = draw(st.lists(st.sampled_from([*pool, "other.Old"]), max_size=2))
    defined.add(full)
    return tree


def _draw_field(draw: st.DrawFn, name: str, depth: int, defined: set[str], space: str) -> Json:
    schema = _draw_schema(draw, depth - 1, defined, space)
    tree: dict[str, Json] = {"name": name, "type": schema}
    fitting = defaults(schema)
    if fitting is not None and draw(st.booleans()):
        tree["default"] = draw(fitting)
    if draw(st.integers(0, 3)) == 0:
        tree["aliases"] = [draw(st.sampled_from(["old", *FIELDS]))]
    if draw(st.integers(0, 5)) == 0:
        tree |= {"order": draw(st.sampled_from(["ascending", "descending", "IGNORE"])), "doc": "d", "p": True}
    return tree
