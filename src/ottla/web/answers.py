"""Answers: JSON in the media types of Confluent's REST APIs, and errors as they spell them.

Rules:
- An error is `{"error_code": …, "message": …}`; the first three digits of its code are the HTTP status by default.
- The client chooses the media type of an answer by `Accept`, among those that the service offers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from starlette.responses import Response

JSON = "application/json"
REGISTRY_JSON = "application/vnd.schemaregistry.v1+json"
# The media types that the registry offers; the first is the default.
REGISTRY_MEDIA_TYPES = (REGISTRY_JSON, "application/vnd.schemaregistry+json", JSON)


def status_of(error_code: int) -> int:
    """Return the HTTP status of an error code: 404 for 404, and for 40401 as well."""
    return error_code if error_code < 1_000 else error_code // 100


def json_answer(
    content: object, *, status: int = 200, media_type: str = REGISTRY_JSON, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer of compact JSON, as Confluent's services write it."""
    return Response(encode_json(content), status, headers=dict(headers or {}), media_type=media_type)


def encode_json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def error_answer(error_code: int, message: str, *, status: int | None = None, media_type: str = JSON) -> Response:
    content = {"error_code": error_code, "message": message}
    return json_answer(content, status=status if status is not None else status_of(error_code), media_type=media_type)


def media_type_for(accept: str | None, offered: Sequence[str]) -> str | None:
    """Return the offered media type that the client prefers; None if it accepts none of them."""
    if not accept or not accept.strip():
        return offered[0]
    best: tuple[float, int, str] | None = None
    for kind, quality in _ranges(accept.split(",")):
        for position, each in enumerate(offered):
            if quality > 0 and _covers(kind, each):
                found = (-quality, position if "*" in kind else -1, each)
                best = found if best is None or found[:2] < best[:2] else best
    return best[2] if best is not None else None


def _ranges(parts: Iterable[str]) -> Iterable[tuple[str, float]]:
    for part in parts:
        kind, *parameters = (each.strip() for each in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 0.0
        yield kind.lower(), quality


def _covers(kind: str, offered: str) -> bool:
    return kind in ("*/*", "*", offered) or (kind.endswith("/*") and offered.startswith(kind[:-1]))
