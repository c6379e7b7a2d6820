"""Paths as handlers see them: split at the slashes before percent-decoding (a subject may contain `%2F`), with the
context of `/contexts/{context}/…` prefixed to the subject, and aliases replaced by their subjects.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote

from ottla.model.limits import PATH_SEGMENTS_MAX, QUERY_PARAMETERS_MAX
from ottla.registry.errors import BadRequest
from ottla.schemas.registry.names import CONTEXT_PREFIX, EVERY_CONTEXT, normal_context
from ottla.schemas.registry.scope import Scope

Query = dict[str, list[str]]
# Segments that are followed by a subject; the last two only at the start of the path.
_BEFORE_SUBJECT = ("subjects", "config", "mode")


def segments_of(raw_path: bytes) -> list[str]:
    """Return the decoded segments of a path. A trailing slash is ignored."""
    parts = raw_path.decode("latin-1").split("/")
    if len(parts) > PATH_SEGMENTS_MAX:
        raise BadRequest(404, "HTTP 404 Not Found")
    if parts and parts[0] == "":
        parts = parts[1:]
    if parts and parts[-1] == "":
        parts = parts[:-1]
    try:
        return [unquote(part, errors="strict") for part in parts]
    except UnicodeDecodeError:
        raise BadRequest(400, "The path is not UTF-8") from None


def query_of(query_string: bytes) -> Query:
    query: Query = {}
    try:
        pairs = parse_qsl(query_string.decode("latin-1"), keep_blank_values=True, max_num_fields=QUERY_PARAMETERS_MAX)
    except ValueError:
        raise BadRequest(400, "The request has too many parameters") from None
    for name, value in pairs:
        query.setdefault(name, []).append(value)
    return query


def in_context(segments: list[str], query: Query) -> tuple[list[str], Query]:
    """Move the context to the subject: `/contexts/.west/subjects/orders` becomes `/subjects/:.west:orders`."""
    if len(segments) < 2 or segments[0] != "contexts":
        return segments, query
    prefix = normal_context(segments[1])
    if prefix is None:
        raise BadRequest(400, f"Context name '{segments[1]}' cannot contain a colon")
    rest = segments[2:]
    if not rest:
        return ["contexts", prefix], query
    subject_at = _subject_at(rest)
    if rest[0] in ("config", "mode") and len(rest) == 1:
        rest = [*rest, prefix] if prefix else rest
    elif subject_at is not None and subject_at < len(rest):
        rest = [*rest[:subject_at], _qualified(prefix, rest[subject_at]), *rest[subject_at + 1 :]]
    if rest[:2] == ["schemas", "ids"]:
        query = {**query, "subject": [_qualified(prefix, (query.get("subject") or [""])[0])]}
    elif rest in (["schemas"], ["subjects"]):
        query = {**query, "subjectPrefix": [_qualified(prefix, each) for each in query.get("subjectPrefix") or [""]]}
    return rest, query


def _subject_at(segments: list[str]) -> int | None:
    for position, segment in enumerate(segments):
        if segment == "subjects" or (position == 0 and segment in _BEFORE_SUBJECT):
            return position + 1
    return None


def _qualified(prefix: str, subject: str) -> str:
    return subject if subject.startswith((CONTEXT_PREFIX, EVERY_CONTEXT)) else prefix + subject


def may_be_aliased(segments: list[str]) -> bool:
    return "subjects" in segments[:-1] or segments[:2] == ["schemas", "ids"]


def unaliased(segments: list[str], query: Query, scope: Scope) -> tuple[list[str], Query]:
    """Replace aliases: of the subject after `subjects`, and of the subject parameter of a lookup by id."""
    if "subjects" in segments[:-1]:
        at = segments.index("subjects") + 1
        segments = [*segments[:at], scope.aliased(segments[at]), *segments[at + 1 :]]
    if segments[:2] == ["schemas", "ids"] and query.get("subject"):
        query = {**query, "subject": [scope.aliased(query["subject"][0])]}
    return segments, query
