"""Keys and values with schemas of a registry: encode JSON as Avro, JSON Schema or Protobuf payloads, and decode them.

Rules:
- An encoder writes with the latest schema of a subject.
- A decoder decodes each payload by the schema id in it. A payload that cannot be decoded is shown as it is, with a
  warning, and is no failure. A registry that does not answer is an error.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.consumer.ranges import ConsumedRecord
    from ottla.client.registry import SchemaRegistry
    from ottla.schemas.json_values import JsonValues

_WARNINGS_MAX = 10


class PayloadType(StrEnum):
    """The type of a schema; with `auto` the registry decides."""

    auto = "auto"
    avro = "avro"
    json = "json"
    protobuf = "protobuf"


class JsonText(bytes):
    """A key or value as JSON text: `--format json` shows the JSON value itself, not a string that contains it."""


class SubjectEncoder:
    """Encodes by the latest schema of a subject. Raises CommandError if there is none, or it has another type."""

    def __init__(self, registry: SchemaRegistry, subject: str, wanted: PayloadType) -> None:
        from ottla.client.registry import RegistryError, RegistryUnreachable
        from ottla.schemas.framing import FIRST_MESSAGE, schema_mark
        from ottla.schemas.json_values import json_values_of
        from ottla.schemas.schema import InvalidSchema, SchemaType

        try:
            found = registry.latest(subject)
            self._values = json_values_of(found.source)
        except RegistryUnreachable as error:
            raise _unreachable(error) from None
        except RegistryError as error:
            hint = f"`ottla schema register {subject} FILE` registers a schema, `ottla schema list` shows the subjects"
            raise CommandError(f"subject {subject}: {error}", hint) from None
        except InvalidSchema as error:
            raise CommandError(f"subject {subject}: {error}") from None
        if wanted not in (PayloadType.auto, found.source.type.value.lower()):
            raise CommandError(
                f"subject {subject} is {found.source.type}, not {wanted.upper()}",
                "`auto` takes whichever type the registry says",
            )
        is_protobuf = found.source.type is SchemaType.PROTOBUF
        self._mark = schema_mark(found.schema_id, FIRST_MESSAGE if is_protobuf else None)
        self._name = f"{subject} version {found.version}"

    def encode(self, value: Any) -> bytes | None:
        """Encode a JSON value as a payload; null stays null."""
        if value is None:
            return None
        try:
            return self._mark + self._values.to_payload(value)
        except ValueError as error:
            raise CommandError(f"not a value of {self._name}: {error}") from None

    def encode_text(self, text: bytes | None) -> bytes | None:
        """Encode JSON text as a payload. Text that is no JSON is taken as a string, so that keys need no quotes."""
        if text is None:
            return None
        try:
            value = json.loads(text)
        except ValueError as error:
            if text[:1] in (b"{", b"[", b'"'):
                raise CommandError(f"not JSON: {error}: {text[:80]!r}") from None
            value = text.decode("utf-8", "replace")
        return self.encode(value)


class PayloadDecoder:
    """Decodes keys, or values, to JSON by the schema ids in them; `warn` is told what `shown` cannot decode."""

    def __init__(
        self,
        registry: SchemaRegistry,
        wanted: PayloadType,
        warn: Callable[[str], None] = lambda _: None,
        *,
        of_key: bool,
    ) -> None:
        self._registry = registry
        self._wanted = wanted
        self._tell = warn
        self._of_key = of_key
        self._values: dict[tuple[int | UUID, tuple[int, ...] | None], JsonValues] = {}
        self._warnings = 0

    def shown(self, record: ConsumedRecord) -> bytes | None:
        """The key or value as JSON text; unchanged, with a warning, if it cannot be decoded."""
        from ottla.client.registry import RegistryError

        try:
            return self.decoded(record)
        except (RegistryError, ValueError) as error:
            self._warn(record, error)
            return record.key if self._of_key else record.value

    def decoded(self, record: ConsumedRecord) -> JsonText | None:
        """The key or value as JSON text; None if it is null. Raises RegistryError for a schema that the registry does
        not give, ValueError for a payload that is not of its schema, CommandError for a registry that does not answer.
        """
        from ottla.client.registry import RegistryUnreachable

        data = record.key if self._of_key else record.value
        if data is None:
            return None
        try:
            value = self._value(record, data)
        except RegistryUnreachable as error:
            raise _unreachable(error) from None
        return JsonText(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))

    def _value(self, record: ConsumedRecord, data: bytes) -> Any:
        from ottla.schemas.framing import find_mark, unframe
        from ottla.schemas.json_values import json_values_of
        from ottla.schemas.schema import SchemaType

        mark = find_mark(record.headers, of_key=self._of_key)
        framed = unframe(data if mark is None else mark)
        schema = framed.schema_id if framed.guid is None else framed.guid
        assert schema is not None, "a frame has an id or a GUID"
        source = self._registry.by_id_or_guid(schema)
        if self._wanted not in (PayloadType.auto, source.type.value.lower()):
            raise ValueError(f"schema {schema} is {source.type}, not {self._wanted.upper()}")
        if source.type is SchemaType.PROTOBUF:
            framed = unframe(data if mark is None else mark, with_indexes=True)
        key = (schema, framed.message_indexes)
        if key not in self._values:
            indexes = framed.message_indexes
            self._values[key] = json_values_of(source) if indexes is None else json_values_of(source, indexes)
        return self._values[key].to_json(data[framed.payload_begin :] if mark is None else data)

    def _warn(self, record: ConsumedRecord, error: Exception) -> None:
        self._warnings += 1
        if self._warnings <= _WARNINGS_MAX:
            last = "; further ones are not told" if self._warnings == _WARNINGS_MAX else ""
            what = "key" if self._of_key else "value"
            where = f"{record.topic}-{record.partition}@{record.offset}"
            self._tell(f"{where}: the {what} is shown as it is: {error}{last}")


def _unreachable(error: Exception) -> CommandError:
    return CommandError(
        str(error), "`ottla up` and `ottla registry` start one; --registry (or OTTLA_REGISTRY) names another"
    )
