"""JSON Schema (drafts 4, 6, 7, 2019-09, 2020-12): parsed, written, normalised, compared as
Confluent's registry does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ottla.schemas import jackson
from ottla.schemas.json.dialects import dialect_of
from ottla.schemas.json.diff.context import TooComplex
from ottla.schemas.json.diff.describe import described
from ottla.schemas.json.diff.kinds import COMPATIBLE
from ottla.schemas.json.diff.schemas import differences
from ottla.schemas.json.documents import Documents
from ottla.schemas.json.load import load
from ottla.schemas.schema import Incompatibility, InvalidSchema, Parsed, SchemaSource

__all__ = ["JsonSchema", "parse_json"]


class JsonSchema:
    """A parsed JSON schema; `node` is its contents."""

    def __init__(self, source: SchemaSource) -> None:
        self._tree = jackson.read(source.text, exact=True)
        dialect = dialect_of(self._tree)
        self.node = load(Documents(self._tree, dialect.id_keyword, source.resolved), dialect)

    @cached_property
    def canonical(self) -> str:
        return jackson.write(self._tree)

    @cached_property
    def normalized(self) -> str:
        return jackson.write(jackson.in_order(self._tree))

    def incompatibilities(self, writer: Parsed) -> Sequence[Incompatibility]:
        assert isinstance(writer, JsonSchema), "schemas of different types are not compared"
        try:
            found = differences(writer.node, self.node)
        except TooComplex:
            sentence = "the schemas are too large to be compared"
            return [Incompatibility("", "#/", f"Unexpected exception during compatibility check: {sentence}")]
        return [Incompatibility(each.kind, each.path, described(each)) for each in found if each.kind not in COMPATIBLE]


def parse_json(source: SchemaSource) -> JsonSchema:
    """Parse a JSON schema. Raises InvalidSchema."""
    try:
        return JsonSchema(source)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None
