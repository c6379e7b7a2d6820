"""For any API and version a request with one element in each of its lists, made from the declarations."""

from __future__ import annotations

from typing import Any

from ottla.model.ids import NO_ID
from ottla.records.build import build_batch
from ottla.wire.message import Field, Request, Struct, fields
from ottla.wire.types import Fixed

TOPIC = "walked"
GROUP = "walking"
TRANSACTION = "walk"
OWN_TAG = 10_000  # the first tag of a field that Kafka does not have


def one_of_each(request: type[Request], version: int, topic_id: bytes) -> Any:
    """Topics, groups and transactional ids have the names above; topics are named by id where they can be. Fields that
    Kafka does not have keep their defaults.
    """
    return _struct(request, version, topic_id)


def _struct(cls: type[Struct], version: int, topic_id: bytes) -> Any:
    values: dict[str, Any] = {}
    for field in fields(cls):
        if version in field.versions and (field.tag is None or field.tag < OWN_TAG):
            value = (
                _struct(field.type, version, topic_id) if isinstance(field.type, type) else _leaf(cls, field, topic_id)
            )
            values[field.name] = [value] if field.is_list else value
    if {"name", "topic_id"} <= set(values) and topic_id != NO_ID:
        values["name"] = None if version in _named(cls).nullable else ""
    return cls(**values)


def _named(cls: type[Struct]) -> Field:
    return next(field for field in fields(cls) if field.name == "name")


def _leaf(cls: type[Struct], field: Field, topic_id: bytes) -> Any:
    name = field.name
    if isinstance(field.type, Fixed):
        if field.type.code == "16s":
            return topic_id if "topic" in name else NO_ID
        if field.type.code == "?":
            return name in ("validate_only", "verify_only")
        if name in ("resource_type", "resource_type_filter"):
            return 2
        if name in ("session_timeout_ms", "rebalance_timeout_ms", "timeout_ms"):
            return 10_000
        if "partition" in name or name in ("index", "key_type", "max_wait_ms", "isolation_level"):
            return 1 if name.startswith("num") else 0
        return field.default if isinstance(field.default, int) and not field.is_list else 1
    if field.type.kind == "records":
        return bytes(build_batch([(b"k", b"v")], timestamp=0))
    if field.type.kind != "string":
        return b"x"
    if "instance" in name:
        return None
    if "group" in name or (name == "key" and "Coordinator" in cls.__qualname__) or name == "coordinator_keys":
        return GROUP
    if "transactional" in name:
        return TRANSACTION
    if "topic" in name or name in ("name", "resource_name"):
        return TOPIC
    return name
