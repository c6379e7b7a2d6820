"""The records of `_schemas`, as Confluent's registry writes and reads them.

Keys and values are JSON without spaces; a key's fields come in a fixed order, because compaction compares its bytes.
Empty fields are left out. `encode` and `decode` convert between these bytes and the entries below.

Two kinds of records are ours: `HighestIds`, so that the id of a permanently deleted schema is never assigned again,
even after compaction has removed all other trace of it; and `Leader`, the address of the instance that writes. Their
keys have the type `NOOP`, which Confluent's registry skips without reading the value, and one field more than
Confluent's own (which its reader ignores), so that compaction does not confuse them.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.schemas.compatibility import Level
from ottla.schemas.framing import guid_of
from ottla.schemas.registry.entities import CONFIG_FIELDS, Config, Mode, SubjectVersion
from ottla.schemas.registry.names import DEFAULT_CONTEXT
from ottla.schemas.schema import Reference, SchemaType

_TENANT = "default"
_HIGHEST_IDS_KEY = {"keytype": "NOOP", "magic": 0, "for": "ottla.highest.ids"}
_LEADER_KEY = {"keytype": "NOOP", "magic": 0, "for": "ottla.leader"}


class RegistryRecord(NamedTuple):
    """A record of the topic. `timestamp_ms` is the record's timestamp: when the schema was registered."""

    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0


class BadRegistryRecord(ValueError):
    """The bytes are not a record of a registry."""


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    """The current content of a version of a subject; None when it is permanently deleted."""

    subject: str
    version: int
    registered: SubjectVersion | None


@dataclass(frozen=True, slots=True)
class SettingsEntry:
    """The settings of a subject or a context; `subject` is None for those of the registry. `config` None: removed."""

    subject: str | None
    config: Config | None


@dataclass(frozen=True, slots=True)
class ModeEntry:
    """The mode of a subject, of a context, or of the registry; None: removed."""

    subject: str | None
    mode: Mode | None


@dataclass(frozen=True, slots=True)
class DeleteSubjectEntry:
    """All versions of the subject up to this one are soft deleted."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ClearSubjectEntry:
    """The soft-deleted versions of the subject (of the context, of the registry if None) are removed."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A context exists, or no longer does."""

    context: str
    exists: bool = True


@dataclass(frozen=True, slots=True)
class HighestIdsEntry:
    """The id that new ids follow, by context: the highest one, but for ids imported far above the others."""

    highest: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LeaderEntry:
    """The instance that writes, by the URL at which other instances reach it."""

    url: str


@dataclass(frozen=True, slots=True)
class NothingEntry:
    """A record without meaning to us: Confluent's way to find the end of the log, or an unknown kind."""


RegistryEntry = (
    SchemaEntry
    | SettingsEntry
    | ModeEntry
    | DeleteSubjectEntry
    | ClearSubjectEntry
    | ContextEntry
    | HighestIdsEntry
    | LeaderEntry
    | NothingEntry
)


def encode(entry: RegistryEntry, timestamp_ms: int) -> RegistryRecord:
    """Encode an entry as Confluent's registry would."""
    key, value = _written(entry)
    return RegistryRecord(_json(key), None if value is None else _json(value), (), timestamp_ms)


def _written(entry: RegistryEntry) -> tuple[dict[str, Any], dict[str, Any] | None]:
    match entry:
        case SchemaEntry(subject, version, registered):
            key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
            return key, None if registered is None else _schema_value(registered)
        case SettingsEntry(subject, config):
            key = _subject_key("CONFIG", subject)
            return key, None if config is None else _with_subject(subject, _present(config, CONFIG_FIELDS))
        case ModeEntry(subject, mode):
            key = _subject_key("MODE", subject)
            return key, None if mode is None else _with_subject(subject, {"mode": mode.value})
        case DeleteSubjectEntry(subject, version):
            return _subject_key("DELETE_SUBJECT", subject), {"subject": subject, "version": version}
        case ClearSubjectEntry(subject):
            return _subject_key("CLEAR_SUBJECT", subject), _with_subject(subject, {})
        case ContextEntry(context, exists):
            key = {"keytype": "CONTEXT", "tenant": _TENANT, "context": context, "magic": 0}
            return key, {"tenant": _TENANT, "context": context} if exists else None
        case HighestIdsEntry(highest):
            return _HIGHEST_IDS_KEY, {"highestIds": dict(sorted(highest.items()))}
        case LeaderEntry(url):
            return _LEADER_KEY, {"url": url}
        case NothingEntry():
            return {"keytype": "NOOP", "magic": 0}, None


def _subject_key(kind: str, subject: str | None) -> dict[str, Any]:
    return {"keytype": kind, **_with_subject(subject, {"magic": 0})}


def _with_subject(subject: str | None, fields: dict[str, Any]) -> dict[str, Any]:
    return fields if subject is None else {"subject": subject, **fields}


def _present(values: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields that are not null or empty, as Confluent's serializer does. A `false` is a value."""
    return {name: value for name in fields if (value := values.get(name)) is not None and value not in ("", [])}


def _schema_value(it: SubjectVersion) -> dict[str, Any]:
    value: dict[str, Any] = {"subject": it.subject, "version": it.version, "id": it.id}
    if it.type != SchemaType.AVRO:
        value["schemaType"] = it.type
    if it.references:
        value["references"] = [reference._asdict() for reference in it.references]
    if it.metadata is not None:
        value["metadata"] = it.metadata
    if it.rule_set is not None:
        value["ruleSet"] = it.rule_set
    return {**value, "schema": it.text, "deleted": it.deleted}


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode(record: RegistryRecord) -> RegistryEntry:
    """Decode a record of any registry. Raises BadRegistryRecord."""
    key = _object(record.key)
    value = None if record.value is None else _object(record.value)
    try:
        return _understood(key, value, record.timestamp_ms)
    except (KeyError, TypeError, ValueError, AttributeError, Base64Error) as error:
        raise BadRegistryRecord(f"{type(error).__name__}: {error}") from error


def _understood(key: dict[str, Any], value: dict[str, Any] | None, timestamp_ms: int) -> RegistryEntry:
    match key.get("keytype"):
        case "SCHEMA":
            subject, version = _text(key["subject"]), _number(key["version"])
            registered = None if value is None else _registered(subject, version, value, timestamp_ms)
            return SchemaEntry(subject, version, registered)
        case "CONFIG":
            return SettingsEntry(_subject(key), None if value is None else _config(value))
        case "MODE":
            mode = None if value is None else Mode(value["mode"])
            return ModeEntry(_subject(key), mode)
        case "DELETE_SUBJECT" if value is not None:
            return DeleteSubjectEntry(_text(key["subject"]), _number(value["version"]))
        case "CLEAR_SUBJECT" if value is not None:
            return ClearSubjectEntry(_subject(value))
        case "CONTEXT":
            return ContextEntry(_text(key.get("context", DEFAULT_CONTEXT)), value is not None)
        case "NOOP" if key == _HIGHEST_IDS_KEY and value is not None:
            return HighestIdsEntry({_text(name): _number(highest) for name, highest in value["highestIds"].items()})
        case "NOOP" if key == _LEADER_KEY and value is not None:
            return LeaderEntry(_text(value["url"]))
    return NothingEntry()


def _registered(subject: str, version: int, value: dict[str, Any], timestamp_ms: int) -> SubjectVersion:
    references = tuple(
        Reference(_text(each["name"]), _text(each["subject"]), _number(each["version"]))
        for each in value.get("references") or ()
    )
    metadata, rule_set, text = value.get("metadata"), value.get("ruleSet"), _text(value["schema"])
    md5 = value.get("md5")
    return SubjectVersion(
        subject,
        version,
        _number(value["id"]),
        text,
        _text(value.get("schemaType") or SchemaType.AVRO.value),
        references,
        metadata,
        rule_set,
        value.get("deleted") is True,
        timestamp_ms,
        b64decode(md5, validate=True) if md5 else guid_of(text, references, metadata, rule_set).bytes,
    )


def _config(value: dict[str, Any]) -> Config:
    config = _present(value, CONFIG_FIELDS)
    for name in ("alias", "aliasForDeks", "compatibilityGroup"):
        _text(config.get(name, ""))
    for name in ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet"):
        if not isinstance(config.get(name, {}), dict):
            raise TypeError(f"{name} is no object")
    return config if "compatibilityLevel" not in config else {**config, "compatibilityLevel": _level(config)}


def _level(config: Mapping[str, Any]) -> str:
    return Level(config["compatibilityLevel"]).value


def _subject(fields: dict[str, Any]) -> str | None:
    subject = fields.get("subject")
    return None if subject is None else _text(subject)


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRegistryRecord("not JSON") from error
    if not isinstance(value, dict):
        raise BadRegistryRecord("not a JSON object")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no number")
    return value
