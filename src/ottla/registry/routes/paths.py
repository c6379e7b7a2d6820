"""Paths as handlers see them: cut at the slashes before percents are decoded (a subject may contain `%2F`), the context
of `/contexts/{context}/…` put in front of the subject it is about, and aliases replaced by what they stand for."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote

from ottla.model.limits import PATH_SEGMENTS_MAX, QUERY_PARAMETERS_MAX
from ottla.registry.errors import BadRequest
from ottla.schemas.registry.names import CONTEXT_PREFIX, EVERY_CONTEXT, normal_context
from ottla.schemas.registry.scope import Scope

Query = dict[str, list[str]]
# Segments after which a subject comes; the last two only where they are the first.
_BEFORE_SUBJECT = ("subjects", "config", "mode")


def segments_of(raw_path: bytes) -> list[str]:
    """The decoded parts of a path. A slash at its end does not matter."""
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
    """`/contexts/.west/subjects/orders` is `/subjects/:.west:orders`."""
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
    """What follows `subjects` may be an alias, and so may the subject that an id is asked for with."""
    if "subjects" in segments[:-1]:
        at = segments.index("subjects") + 1
        segments = [*segments[:at], scope.aliased(segments[at]), *segments[at + 1 :]]
    if segments[:2] == ["schemas", "ids"] and query.get("subject"):
        query = {**query, "subject": [scope.aliased(query["subject"][0])]}
    return segments, query
