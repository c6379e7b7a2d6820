"""Schemas, and the checks of payloads by schemas."""

from ottla.model.limits.units import KIB, MIB

# Maximum age of a broker's copy of the schemas if another node leads their topic.
SCHEMAS_STALE_MS = 1_000
# Bytes of `_schemas` that are read in one turn of the loop: some ten milliseconds' worth.
SCHEMAS_SLICE_BYTES = 256 * KIB
# Records of `_schemas` that are applied at once; the decompressed size of one of its batches (a registry writes one
# schema per batch, whose text is bounded); and doubts about unknown schemas that are remembered.
SCHEMAS_TAKEN_AT_ONCE = 200
SCHEMAS_BATCH_BYTES_MAX = 8 * MIB
SCHEMA_DOUBTS_MAX = 10_000
# Batches with dead letters that are remembered, so that a retry soon after writes no second letters.
SENT_LETTERS_MAX = 4_096
# Doubts that one batch may add.
DOUBTS_PER_BATCH_MAX = 100
# Nesting depth of a schema's JSON: the functions that walk it are recursive.
SCHEMA_DEPTH_MAX = 100
# Characters of a type's full name, and its dot-separated parts: every type of a namespace repeats the namespace.
SCHEMA_NAME_CHARS_MAX = 1_024
SCHEMA_NAME_PARTS_MAX = 100
# Digits of a number in a schema, before or after the point: Python converts no more than 4,300.
SCHEMA_NUMBER_DIGITS_MAX = 4_000
# Pairs of types that one comparison examines (a second or two), and differences that it reports.
SCHEMA_PAIRS_MAX = 50_000
SCHEMA_DIFFERENCES_MAX = 1_000
# The work of regular expressions in one comparison: of the patterns of one schema on names of the other (a second).
SCHEMA_PATTERN_WORK_MAX = 5_000_000
# Characters of a record's error, in a header or in an answer (some hundred thousand fit one batch), and records of a
# refused batch whose errors are reported.
RECORD_FAULT_CHARS_MAX = 300
RECORD_FAULTS_TOLD_MAX = 1_000
# Bounds on payloads that the broker checks by their schemas, so that a few bytes cannot keep it busy. Avro: the nesting
# depth, and the fields examined per byte (some fields take no bytes).
AVRO_DEPTH_MAX = 500
AVRO_STEPS_PER_BYTE_MAX = 100
# JSON: schema keywords applied per byte, and for the smallest payload (a keyword takes some microseconds).
JSON_STEPS_PER_BYTE_MAX = 10
JSON_STEPS_MIN = 1_000
# The work of regular expressions (some 0.2 microseconds each) per byte of a JSON payload, and for the smallest one; and
# what a schema may take once besides, for expressions that are used for the first time.
JSON_PATTERN_WORK_PER_BYTE_MAX = 30
JSON_PATTERN_WORK_MIN = 15_000
JSON_PATTERN_WORK_FIRST = 500_000
# Nesting depth of values in a JSON payload, for the broker and for readers alike (Java's Jackson: 1,000).
JSON_DEPTH_MAX = 500
# Characters of a .proto file (or of its base64 form): protoc's own descriptor.proto has 60 KB.
PROTOBUF_TEXT_CHARS_MAX = 4 * MIB
# Nesting depth of message types, and of values in options: protoc's bound. Also the length of a frame's message
# indexes.
PROTOBUF_DEPTH_MAX = 32
# Nesting depth of messages and groups in a payload: the bound of the Protobuf library, in Python and in Java.
PROTOBUF_PAYLOAD_DEPTH_MAX = 100
# The largest number of a field: a tag has 3 bits for the wire type, and 29 for the field.
PROTOBUF_FIELD_NUMBER_MAX = 2**29 - 1
# Columns that one schema may become: types that are used in many places multiply, and every column takes its part of
# the memory.
COLUMNS_MAX = 4_096
# Entries of one Protobuf value in all columns together (mostly 8 bytes each): a repeated message of two bytes has an
# entry in every column below it.
COLUMN_CELLS_PER_VALUE_MAX = 2**24
# Items that take no bytes (nulls, empty records) in all arrays of one value: without a bound ten bytes could demand
# unlimited memory.
ITEMS_OF_NO_SIZE_MAX = 65_536
# Decoders of different schemas that a task caches, for keys and for values.
DECODERS_KEPT_MAX = 500
# Topics whose settings are asked for in one request, to find those under contract.
CONTRACT_TOPICS_AT_ONCE = 500
