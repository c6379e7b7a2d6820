"""Files that every schema may import without a reference: Google's well-known types and Confluent's.

Google's come with the protobuf package, those of `google/type` only where `googleapis-common-protos` is installed.
Confluent's are small and included here: their field numbers are used in records and options on the wire.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from google.protobuf.descriptor_pb2 import FileDescriptorProto

DESCRIPTOR_FILE = "google/protobuf/descriptor.proto"
_PROTOBUF = (
    *("any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp", "type"),
    "wrappers",
)
_TYPES = (
    *("calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction", "interval", "latlng"),
    *("money", "month", "phone_number", "postal_address", "quaternion", "timeofday"),
)
KNOWN_PATHS = frozenset(
    [f"google/protobuf/{name}.proto" for name in _PROTOBUF] + [f"google/type/{name}.proto" for name in _TYPES]
)

CONFLUENT = {
    "confluent/meta.proto": """
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        option go_package = "../confluent";
        message Meta {
          string doc = 1;
          map<string, string> params = 2;
          repeated string tags = 3;
          repeated Rule rules = 4;
        }
        message Rule {
          string name = 1;
          string doc = 2;
          string expr = 3;
          string sql = 4;
        }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
    """,
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        message Decimal {
          bytes value = 1;
          uint32 precision = 2;
          int32 scale = 3;
        }
    """,
    "confluent/type/variant.proto": """
        syntax = "proto3";
        package confluent.type;
        message Variant {
          bytes metadata = 1;
          bytes value = 2;
        }
    """,
}


@cache
def known_descriptor(path: str) -> FileDescriptorProto | None:
    """Return the descriptor of one of Google's files, if it is one and installed."""
    if path not in KNOWN_PATHS:
        return None
    try:
        module = import_module(path.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ImportError:
        return None
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
