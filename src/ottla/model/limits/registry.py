"""The schema registry, and what clients cache of it."""

from ottla.model.limits.units import KIB, MIB

# A subject's name is part of a record's key and of URLs; topic names end at 249.
SUBJECT_NAME_CHARS_MAX = 1_024
# A schema is one record of `_schemas`, escaped as JSON, beside its metadata; topics take messages of 1 MiB by default.
SCHEMA_TEXT_CHARS_MAX = 1_000_000
# New ids go on after an imported id up to this one. Higher ones are only skipped, so no import uses up the 32-bit ids.
SCHEMA_ID_CONTINUED_MAX = 2**30
# References that are followed to parse a schema: their number per schema, and their depth.
REFERENCES_PER_SCHEMA_MAX = 1_000
REFERENCES_DEPTH_MAX = 64
# Parsed schemas that are cached, and the total length of their texts (parsed they take tens of times that); parsing one
# again costs milliseconds.
SCHEMAS_PARSED_REMEMBERED = 1_000
SCHEMAS_PARSED_CHARS_MAX = 8 * MIB
# Interval at which a registry retries a record of `_schemas` that it cannot apply.
REGISTRY_UNREADABLE_RETRY_MS = 60_000
# Records of `_schemas` that are applied, and subjects or schemas that are listed, in one turn of the loop.
REGISTRY_RECORDS_AT_ONCE = 500
# Interval at which a running registry tries to log in again, after the cluster has begun to refuse its user.
REGISTRY_LOGIN_PAUSE_S = 30.0
REGISTRY_SUBJECTS_AT_ONCE = 2_000
REGISTRY_SCHEMAS_AT_ONCE = 100
# Request bodies from this length on are parsed in a thread, outside the event loop.
REGISTRY_BODY_AT_ONCE_BYTES = 64 * KIB
# Versions, and their total characters, that one request compares a schema with: some seconds of work for a thread.
SCHEMA_VERSIONS_COMPARED_MAX = 1_000
SCHEMA_CHARS_COMPARED_MAX = 4 * MIB
# Commas, colons and brackets in the JSON of a request: one call of the JSON parser would hold up everything else if
# there were more.
JSON_BODY_PARTS_MAX = 500_000
# Threads that work on schemas of different requests at the same time.
SCHEMA_THREADS_MAX = 4
# The error message of an incompatible schema quotes the older schema, cut at this length as Confluent's is.
OLD_SCHEMA_SHOWN_CHARS_MAX = 10 * KIB
# Segments of a path and parameters of a request: the API needs fewer than ten of either.
PATH_SEGMENTS_MAX = 32
QUERY_PARAMETERS_MAX = 1_000
# Characters of a rule's name; Confluent has the same bound.
RULE_NAME_CHARS_MAX = 256
# Schemas that a client caches by id and by version; most jobs use a handful.
REGISTRY_SCHEMAS_CACHED_MAX = 1_000
# Unknown schema ids for which a client retries, for a second each: an instance may be behind, but corrupt records may
# name any id.
REGISTRY_WAITS_IN_VAIN_MAX = 8
# How often an instance that is elected while it forwards a request begins the request again.
REGISTRY_LEADERS_MAX = 3
# Bytes of a schema registry's answer: schemas are texts of kilobytes.
REGISTRY_ANSWER_BYTES_MAX = 64 * MIB
# References, transitive ones included, that one schema may need: more is a cycle or an attack.
REGISTRY_REFERENCES_MAX = 1_000
# Lines of a schema whose differences from another one are looked for: comparing takes longer than in proportion.
SCHEMA_DIFF_LINES_MAX = 4_000
