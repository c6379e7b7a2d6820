"""Avro schemas: parsed, written as Confluent's registry writes them, normalised, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ottla.schemas import jackson
from ottla.schemas.avro.compare import incompatibilities
from ottla.schemas.avro.describe import described
from ottla.schemas.avro.normal import normal
from ottla.schemas.avro.parse import Parser
from ottla.schemas.avro.types import AvroType, full_name
from ottla.schemas.avro.write import to_text
from ottla.schemas.schema import Incompatibility, InvalidSchema, Parsed, SchemaSource

__all__ = ["AvroSchema", "parse_avro"]


class AvroSchema:
    """A parsed Avro schema; `schema` is its type, `known` the full names that references define."""

    def __init__(self, source: SchemaSource, *, strict: bool) -> None:
        self._source = source
        self._strict = strict
        self._parser, self.known = _with_references(source, strict=strict)
        self.schema: AvroType = self._parser.parse(jackson.read(source.text, comments=True))
        self.canonical = to_text(self.schema, self.known)

    @cached_property
    def normalized(self) -> str:
        parser, known = _with_references(self._source, strict=self._strict)
        return to_text(parser.parse(normal(self.schema, self.known)), known)

    def incompatibilities(self, writer: Parsed) -> Sequence[Incompatibility]:
        assert isinstance(writer, AvroSchema), "schemas of different types are not compared"
        return [described(found) for found in incompatibilities(self.schema, writer.schema)]


def parse_avro(source: SchemaSource, *, strict: bool = True) -> AvroSchema:
    """Parse an Avro schema; with `strict`, check it as a new one. Raises InvalidSchema."""
    try:
        return AvroSchema(source, strict=strict)
    except RecursionError:
        raise InvalidSchema("types are nested too deeply") from None


def _with_references(source: SchemaSource, *, strict: bool) -> tuple[Parser, tuple[str, ...]]:
    parser = Parser(strict=strict)
    known = []
    for name, text in source.resolved.items():
        try:
            known.append(full_name(parser.parse(jackson.read(text, comments=True))))
        except InvalidSchema as error:
            raise InvalidSchema(f"reference {name}: {error}") from None
    return parser, tuple(known)
