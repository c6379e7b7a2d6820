"""Make an error response for a request of any API.

For an API that only reads, the error is put into the real response. For an API that changes something, the response is
made from the request: the same topics, partitions or groups, each with the error. In both cases the error is in the
innermost structures that can have one.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from ottla.model.errors import ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import Served
from ottla.server.loop.later import Large, Later, Sliced
from ottla.wire import api
from ottla.wire.message import REQUIRED, Field, Struct, fields
from ottla.wire.types import Fixed, Sized

ERROR = "error_code"
# APIs that change nothing: the error is put into their real response.
_READING = frozenset(
    {"Metadata", "Fetch", "ListOffsets", "FindCoordinator", "DescribeGroups", "ListGroups", "DescribeCluster"}
    | {"DescribeConfigs", "ConsumerGroupDescribe", "ShareGroupDescribe", "OffsetFetch", "OffsetForLeaderEpoch"}
)


def refusal(endpoint: Served, request: Any, context: Context, error: ErrorCode) -> Any:
    if endpoint.name in _READING:
        answer = endpoint.handler(request, context)
        if answer is not None:
            return with_error(answer, error)
    response = _mirrored(api.response_class(endpoint.key), request, error)
    if endpoint.name == "Produce" and request.acks == 0:
        return None
    return response


def with_error(answer: Any, error: ErrorCode) -> Any:
    """The answer of a handler, now or later, with the error in its innermost structures."""
    match answer:
        case Later():
            return answer.map(lambda value: with_error(value, error))
        case Large(response=response):
            return with_error(response, error)
        case Sliced(making=making, changes=changes):
            return Sliced(_awaited(making, error), changes=changes)
        case Awaitable():
            return _awaited(answer, error)
    _put(answer, error)
    return answer


async def _awaited(answer: Awaitable[Any], error: ErrorCode) -> Any:
    return with_error(await answer, error)


def _put(struct: Struct, error: ErrorCode) -> bool:
    """Set the error in the innermost structures; whether there was a field for it."""
    inner = False
    for field in fields(type(struct)):
        value = getattr(struct, field.name)
        if isinstance(value, list) and value and isinstance(value[0], Struct):
            for each in value:
                inner = _put(each, error) or inner
    if not inner and hasattr(struct, ERROR):
        setattr(struct, ERROR, error)
        return True
    return inner


def _mirrored(kind: type[Struct], source: Any, error: ErrorCode) -> Any:
    """A `kind` with the fields that it shares with `source`, and with the error if it has a field for one."""
    values: dict[str, Any] = {}
    nested = False
    for field in fields(kind):
        own = getattr(source, field.name, None)
        if own is None and field.name in ("topic_name", "user"):
            own = getattr(source, "name", None)
        if field.name == ERROR:
            continue
        if field.is_list:
            items = _counterpart(field.type, source) if _is_struct(field.type) else []
            values[field.name] = [_mirrored(field.type, each, error) for each in items]  # type: ignore[arg-type]
            nested = nested or any(_carries(each) for each in values[field.name])
        elif not values and _suits(source, field):
            values[field.name] = source  # the request has only a name or a number for this item
        elif own is not None and not isinstance(own, list | Struct):
            values[field.name] = own
        elif field.default is REQUIRED:
            values[field.name] = _blank(field)
    if any(field.name == ERROR for field in fields(kind)):
        values[ERROR] = ErrorCode.NONE if nested else error
    return kind(**values)


def _carries(struct: Struct) -> bool:
    """Whether the struct has an error, itself or in a nested one."""
    inner = (getattr(struct, field.name) for field in fields(type(struct)) if field.is_list)
    lists = (value for value in inner if value and isinstance(value[0], Struct))
    return bool(getattr(struct, ERROR, 0)) or any(_carries(each) for value in lists for each in value)


def _counterpart(kind: Any, source: Any) -> list[Any]:
    """The list in the request whose items share most fields with those of the response; otherwise its list of names or
    numbers.
    """
    wanted = {field.name for field in fields(kind)} - {ERROR}
    best: list[Any] = []
    shared = 0
    for field in fields(type(source)) if isinstance(source, Struct) else ():
        value = getattr(source, field.name)
        if not isinstance(value, list) or not value:
            continue
        common = len(wanted & {each.name for each in fields(type(value[0]))}) if isinstance(value[0], Struct) else 0
        if common > shared or (not best and isinstance(value[0], str | int)):
            best, shared = value, common
    has_error = any(field.name == ERROR for field in fields(kind))
    return best or _further_inside(wanted, source) or (_all_structs(source) if has_error else [])


def _all_structs(source: object) -> list[Struct]:
    """All structures in lists of the request, whose answers repeat nothing of them (ACLs)."""
    lists = [getattr(source, field.name) for field in fields(type(source))] if isinstance(source, Struct) else []
    return [each for value in lists if isinstance(value, list) for each in value if isinstance(each, Struct)]


def _further_inside(wanted: set[str], source: Any) -> list[Any]:
    """All items of the inner lists, if the request groups them by something that the response does not have (topics by
    directory).
    """
    found: list[Any] = []
    for field in fields(type(source)) if isinstance(source, Struct) else ():
        groups = getattr(source, field.name) if field.is_list and _is_struct(field.type) else ()
        for group in groups or ():  # null stands for all
            for inner in fields(type(group)):
                if inner.is_list and _is_struct(inner.type) and wanted & {each.name for each in fields(inner.type)}:  # type: ignore[arg-type]
                    found.extend(getattr(group, inner.name) or ())
    return found


def _blank(field: Field) -> Any:
    """An empty value of the field's type."""
    if isinstance(field.type, Fixed):
        return {"?": False, "16s": bytes(16)}.get(field.type.code, -1)
    if isinstance(field.type, Sized):
        return "" if field.type.kind == "string" else b""
    return _mirrored(field.type, None, ErrorCode.NONE)


def _suits(value: Any, field: Field) -> bool:
    return isinstance(value, int if isinstance(field.type, Fixed) else str)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)
