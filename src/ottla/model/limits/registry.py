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
# An older schema is part of the message that a newer one does not fit it, cut here as Confluent does.
OLD_SCHEMA_SHOWN_CHARS_MAX = 10 * KIB
# Segments of a path and parameters of a request: the API needs fewer than ten of either.
PATH_SEGMENTS_MAX = 32
QUERY_PARAMETERS_MAX = 1_000
# Names of rules, as Confluent bounds them.
RULE_NAME_CHARS_MAX = 256
# What our client keeps of a schema registry: schemas by id and version; most jobs use a handful.
REGISTRY_SCHEMAS_CACHED_MAX = 1_000
# An answer of a schema registry: schemas are texts of kilobytes.
REGISTRY_ANSWER_BYTES_MAX = 64 * MIB
# References, theirs included, that one schema may need: more is a circle or an attack.
REGISTRY_REFERENCES_MAX = 1_000
