"""The schema registry, and what our clients keep of one."""

from ottla.model.limits.units import KIB, MIB

# A subject's name is part of a record's key and of URLs; topic names end at 249.
SUBJECT_NAME_CHARS_MAX = 1_024
# A schema is one record of `_schemas`, escaped as JSON, beside its metadata; topics take messages of 1 MiB unless told.
SCHEMA_TEXT_CHARS_MAX = 1_000_000
# References are followed to parse a schema: so many of one schema, so deep.
REFERENCES_PER_SCHEMA_MAX = 1_000
REFERENCES_DEPTH_MAX = 64
# Parsed schemas that are kept, and how long their texts are together (parsed they take tens of times that); parsing one
# again costs milliseconds.
SCHEMAS_PARSED_REMEMBERED = 1_000
SCHEMAS_PARSED_CHARS_MAX = 8 * MIB
# A record of `_schemas` that a registry cannot take in is tried again after so long.
REGISTRY_UNREADABLE_RETRY_MS = 60_000
# Records of `_schemas` that are applied, and subjects or schemas that are listed, in one turn of the loop.
REGISTRY_RECORDS_AT_ONCE = 500
REGISTRY_SUBJECTS_AT_ONCE = 2_000
REGISTRY_SCHEMAS_AT_ONCE = 100
# Bodies of requests from this length on are understood outside the loop.
REGISTRY_BODY_AT_ONCE_BYTES = 64 * KIB
# Versions, and characters of them, that one request compares a schema with: some seconds' work for a thread.
SCHEMA_VERSIONS_COMPARED_MAX = 1_000
SCHEMA_CHARS_COMPARED_MAX = 4 * MIB
# Commas, colons and brackets in the JSON of a request: what one call of its parser makes of more holds everybody up.
JSON_BODY_PARTS_MAX = 500_000
# Work on schemas of several requests at the same time, each in a thread of its own.
SCHEMA_THREADS_MAX = 4
# An older schema is part of the message that a newer one does not fit it, cut here as Confluent does.
OLD_SCHEMA_SHOWN_CHARS_MAX = 10 * KIB
# Segments of a path and parameters of a request: the API needs fewer than ten of either.
PATH_SEGMENTS_MAX = 32
QUERY_PARAMETERS_MAX = 1_000
# Names of rules, as Confluent bounds them.
RULE_NAME_CHARS_MAX = 256
# What our client keeps of a schema registry: schemas by id and version; most jobs use a handful.
REGISTRY_SCHEMAS_CACHED_MAX = 1_000
# Ids for which our client waits in vain, a second each: an instance may be behind, but junk may name any id.
REGISTRY_WAITS_IN_VAIN_MAX = 8
# An answer of a schema registry: schemas are texts of kilobytes.
REGISTRY_ANSWER_BYTES_MAX = 64 * MIB
# References, theirs included, that one schema may need: more is a circle or an attack.
REGISTRY_REFERENCES_MAX = 1_000
