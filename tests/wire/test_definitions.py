"""Our declarations say the same as Kafka's own definitions, field by field."""

from typing import Any

import pytest
from tests.support import tools
from tests.support.messages.declared import RETIRED, declared, snake
from tests.support.messages.definitions import NEVER, STRUCT_DEFAULT, Definition, Field, definitions
from tests.support.requests.one_of_each import OWN_TAG

from ottla.wire import types
from ottla.wire.api import FIRST_OWN_KEY
from ottla.wire.message import REQUIRED, MessageType, Struct, fields

if tools.missing() is None:
    DEFINITIONS = [each for each in definitions() if each.name not in RETIRED]
else:
    DEFINITIONS = []

TYPE_NAMES = {
    types.Bool.__metadata__[0]: "bool",
    types.Int8.__metadata__[0]: "int8",
    types.Int16.__metadata__[0]: "int16",
    types.UInt16.__metadata__[0]: "uint16",
    types.Int32.__metadata__[0]: "int32",
    types.UInt32.__metadata__[0]: "uint32",
    types.Int64.__metadata__[0]: "int64",
    types.Float64.__metadata__[0]: "float64",
    types.Uuid.__metadata__[0]: "uuid",
    types.String.__metadata__[0]: "string",
    types.Bytes.__metadata__[0]: "bytes",
    types.Records.__metadata__[0]: "records",
}
# Defaults that differ from the definition's on purpose.
OTHER_DEFAULTS = {
    ("RequestHeader", "client_id"): None,  # a client that does not say who it is; Kafka's default is an empty name
}
# Fields that only we send, as tags that Kafka does not know and skips.
OWN_FIELDS = {
    ("RequestHeader", "trace_parent"),
    ("ApiVersionsResponse", "traces"),
    ("DescribeQuorumResponse", "in_doubt"),
    ("DescribeLogDirsRequest", "with_sent_bytes"),
    ("DescribeLogDirsRequest", "rates_of_tenant"),
    ("DescribeLogDirsResponse", "produced_byte_rate"),
    ("DescribeLogDirsResponse", "consumed_byte_rate"),
    ("DescribeLogDirsResponse", "results.topics.partitions.sent_bytes"),
    ("ListOffsetsRequest", "topics.partitions.unread_from"),
    ("ListOffsetsResponse", "topics.partitions.record_times_ms"),
}


@pytest.fixture(autouse=True)
def _tools(java_tools: None) -> None:
    """The definitions are in the jars."""


def test_no_message_is_missing_on_either_side() -> None:
    kafkas = {each.name for each in DEFINITIONS}
    ours = {name for name, each in declared().items() if each.key < FIRST_OWN_KEY}
    assert sorted(kafkas - ours) == [], "Kafka defines these and we do not declare them"
    assert sorted(ours - kafkas) == [], "we declare these and Kafka does not define them"
    retired = {each.name for each in definitions() if each.versions == NEVER}
    assert retired == RETIRED


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.name)
def test_declaration_agrees(definition: Definition) -> None:
    cls = declared()[definition.name]
    wanted = {
        "key": -1 if definition.api_key is None else definition.api_key,
        "versions": definition.versions,
        "flexible": effective(definition.flexible, definition.versions),
        "latest_unstable": definition.unstable_latest,
    }
    found = {
        "key": cls.key,
        "versions": tuple(cls.versions),
        "flexible": effective(tuple(cls.flexible), definition.versions),
        "latest_unstable": cls.latest_unstable,
    }
    assert found == wanted
    wanted_fields = expected(definition.fields, definition.versions)
    for (message, field), default in OTHER_DEFAULTS.items():
        if message == definition.name:
            wanted_fields[field]["default"] = default
    found_fields = described(cls, definition.versions)
    for path in [path for message, path in OWN_FIELDS if message == definition.name]:
        *outer, name = path.split(".")
        inside = found_fields
        for each in outer:
            inside = inside[each]["fields"]
        assert inside.pop(name)["tag"] >= OWN_TAG
    assert found_fields == wanted_fields


def effective(versions: tuple[int, int], bounds: tuple[int, int]) -> tuple[int, int] | None:
    """The part of a version range that can matter: "0+" and "0-3" are the same where only 0 to 3 exist."""
    low, high = max(versions[0], bounds[0]), min(versions[1], bounds[1])
    return (low, high) if low <= high else None


def expected(declaration: tuple[Field, ...], bounds: tuple[int, int]) -> dict[str, Any]:
    """What Kafka's definition says about the fields, for versions within `bounds`."""
    result: dict[str, Any] = {}
    for field in declaration:
        present = effective(field.versions, bounds)
        if present is None:
            continue  # removed from every version that still exists
        result[snake(field.name)] = {
            "type": "struct" if field.fields is not None else field.type,
            "array": field.array,
            "versions": present,
            "nullable": effective(field.nullable, present),
            "tag": field.tag,
            "default": {} if field.default is STRUCT_DEFAULT else field.default,
            "flexible": "message's" if field.flexible is None else effective(field.flexible, present),
            "fields": None if field.fields is None else expected(field.fields, present),
        }
    return result


def described(cls: type[Struct], bounds: tuple[int, int]) -> dict[str, Any]:
    """What our declaration says, in the same form."""
    result: dict[str, Any] = {}
    for field in fields(cls):
        present = effective(tuple(field.versions), bounds)
        assert present is not None, f"{cls.__qualname__}.{field.name} exists in no version"
        struct = isinstance(field.type, MessageType)
        result[field.name] = {
            "type": "struct" if struct else TYPE_NAMES[field.type],
            "array": field.is_list,
            "versions": present,
            "nullable": effective(tuple(field.nullable), present),
            "tag": field.tag,
            "default": _default(field),
            "flexible": "message's" if field.flexible is None else effective(tuple(field.flexible), present),
            "fields": described(field.type, present) if struct else None,
        }
    return result


def _default(field: Any) -> Any:
    """A field without a default has Kafka's: the type's zero. The constructor only wants such fields to be given."""
    if field.default is not REQUIRED:
        return {} if isinstance(field.default, MessageType) else field.default
    if field.is_list:
        return []
    if isinstance(field.type, MessageType):
        return {}
    zeros = {"string": "", "bytes": b"", "records": b"", "uuid": bytes(16), "bool": False, "float64": 0.0}
    return zeros.get(TYPE_NAMES[field.type], 0)
