"""Schemas, and payloads that are checked by them."""

from ottla.model.limits.units import KIB, MIB

# How old what is known of schemas may be where another node leads their topic; doubts about them that are remembered.
SCHEMAS_STALE_MS = 1_000
# What is read of `_schemas` in one turn: some ten milliseconds' worth.
SCHEMAS_SLICE_BYTES = 256 * KIB
# Records of it that are taken in at once, and what one of its batches may unpack to: a registry's have one schema,
# whose text is bounded.
SCHEMAS_TAKEN_AT_ONCE = 200
SCHEMAS_BATCH_BYTES_MAX = 8 * MIB
SCHEMA_DOUBTS_MAX = 10_000
# Doubts that one batch may add to them.
DOUBTS_PER_BATCH_MAX = 100
# How deeply a schema's JSON nests: what walks it recurses.
SCHEMA_DEPTH_MAX = 100
# The full name of a type, and the names in it: every type of a namespace is known by all of it.
SCHEMA_NAME_CHARS_MAX = 1_024
SCHEMA_NAME_PARTS_MAX = 100
# Digits of a number in a schema, before or behind the point: Python writes no more than 4,300.
SCHEMA_NUMBER_DIGITS_MAX = 4_000
# Pairs of types that one comparison looks at (a second or two), and differences that it reports.
SCHEMA_PAIRS_MAX = 50_000
SCHEMA_DIFFERENCES_MAX = 1_000
# What is wrong with a record, as a header or in an answer (some hundred thousand fit one batch), and how many of a
# refused batch are told.
RECORD_FAULT_CHARS_MAX = 300
RECORD_FAULTS_TOLD_MAX = 1_000
# Payloads that the broker checks by their schemas; a few bytes must not keep it busy. Avro: how deep one nests, and how
# many fields are looked at per byte (there may be some without any).
AVRO_DEPTH_MAX = 500
AVRO_STEPS_PER_BYTE_MAX = 100
# JSON: keywords that are applied per byte, and to the smallest payload (a keyword takes some microseconds).
JSON_STEPS_PER_BYTE_MAX = 10
JSON_STEPS_MIN = 1_000
# How deep values nest in a JSON payload, for the broker and for readers alike (Java's Jackson: 1,000).
JSON_DEPTH_MAX = 500
# The text of a .proto file (or its base64 form): protoc's own descriptor.proto has 60 KB.
PROTOBUF_TEXT_CHARS_MAX = 4 * MIB
# Messages in messages, and values in values of options: protoc's bound. Also what message indexes of a frame may have.
PROTOBUF_DEPTH_MAX = 32
# Messages and groups in each other in a payload: the library's bound, and Java's.
PROTOBUF_PAYLOAD_DEPTH_MAX = 100
# The largest number of a field: a tag has 3 bits for the wire type, and 29 for the field.
PROTOBUF_FIELD_NUMBER_MAX = 2**29 - 1
# Columns that one schema may become: types used in many places multiply, and every column takes its part of the arena.
COLUMNS_MAX = 4_096
# Entries that the messages of one Protobuf value may take in all columns (8 bytes each, as a rule): a repeated message
# of two bytes has one in every column below it.
COLUMN_CELLS_PER_VALUE_MAX = 2**24
# Items that take no bytes (nulls, empty records) in all arrays of one value: without a bound ten bytes could ask for
# memory without end.
ITEMS_OF_NO_SIZE_MAX = 65_536
# Decoders of different schemas that a task keeps ready, for keys and for values.
DECODERS_KEPT_MAX = 500
