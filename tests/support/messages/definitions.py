"""Kafka's message definitions, read from its jars and parsed into plain data; none is copied into the repository."""

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.support.tools import KAFKA_LIBS

LATEST = 32767
NEVER = (1, 0)

# Where each jar keeps its definitions, and the Java package of the classes generated from them.
SOURCES = {
    "kafka-clients": ("common/message/", "org.apache.kafka.common.message"),
    "kafka-metadata": ("common/metadata/", "org.apache.kafka.common.metadata"),
    "kafka-group-coordinator": ("common/message/", "org.apache.kafka.coordinator.group.generated"),
    "kafka-transaction-coordinator": ("common/message/", "org.apache.kafka.coordinator.transaction.generated"),
    "kafka-share-coordinator": ("common/message/", "org.apache.kafka.coordinator.share.generated"),
    "kafka-raft": ("common/message/", "org.apache.kafka.raft.generated"),
    "kafka-storage": ("message/", "org.apache.kafka.server.log.remote.metadata.storage.generated"),
}

Versions = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str  # a primitive's name, or the name of a struct
    array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    default: Any  # as a Python value; None stands for null
    flexible: Versions | None  # only where it differs from the message's
    fields: tuple["Field", ...] | None  # of a struct

    @property
    def json_name(self) -> str:
        return self.name[0].lower() + self.name[1:]


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    jar: str
    kind: str  # request, response, header, data, metadata, coordinator-key, coordinator-value
    api_key: int | None
    versions: Versions
    flexible: Versions
    unstable_latest: bool
    fields: tuple[Field, ...]

    @property
    def java_class(self) -> str:
        """The generated class; requests, responses and headers get "Data" added to their name."""
        package = SOURCES[self.jar][1]
        return f"{package}.{self.name}{'Data' if self.kind in ('request', 'response', 'header') else ''}"

    def all_versions(self) -> range:
        return range(self.versions[0], self.versions[1] + 1)


def parse_versions(text: str) -> Versions:
    if text == "none":
        return NEVER
    low, dash, high = text.partition("-")
    if low.endswith("+"):
        return int(low[:-1]), LATEST
    return int(low), int(high if dash else low)


def within(version: int, versions: Versions) -> bool:
    return versions[0] <= version <= versions[1]


@cache
def definitions() -> tuple[Definition, ...]:
    """Every definition in every jar, in a stable order."""
    return tuple(sorted(_read_all(), key=lambda each: (each.jar, each.name)))


def _read_all() -> Iterator[Definition]:
    for jar, (folder, _) in SOURCES.items():
        with zipfile.ZipFile(KAFKA_LIBS / f"{jar}-4.3.1.jar") as archive:
            for name in archive.namelist():
                if name.startswith(folder) and name.endswith(".json"):
                    yield _parse(jar, _json(archive.read(name).decode()))


def _json(text: str) -> dict[str, Any]:
    """JSON with // comments, which may follow a value but also occur inside strings."""
    bare = re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*', lambda match: match[1] or "", text)
    parsed: dict[str, Any] = json.loads(bare)
    return parsed


def _parse(jar: str, raw: dict[str, Any]) -> Definition:
    common = {each["name"]: each["fields"] for each in raw.get("commonStructs", ())}
    versions = parse_versions(raw["validVersions"])
    return Definition(
        name=raw["name"],
        jar=jar,
        kind=raw["type"],
        api_key=raw.get("apiKey"),
        versions=versions,
        flexible=parse_versions(raw.get("flexibleVersions", "none")),
        unstable_latest=raw.get("latestVersionUnstable", False),
        fields=tuple(_field(each, common) for each in raw.get("fields", ())),
    )


def _field(raw: dict[str, Any], common: dict[str, Any]) -> Field:
    array = raw["type"].startswith("[]")
    type_name = raw["type"].removeprefix("[]")
    nested = raw.get("fields") or (common.get(type_name) if type_name[0].isupper() else None)
    tagged = raw.get("taggedVersions", "none")
    return Field(
        name=raw["name"],
        type=type_name,
        array=array,
        versions=parse_versions(raw.get("versions") or tagged),
        nullable=parse_versions(raw.get("nullableVersions", "none")),
        tag=raw.get("tag"),
        tagged=parse_versions(tagged),
        default=_default(raw.get("default"), type_name, array),
        flexible=parse_versions(raw["flexibleVersions"]) if "flexibleVersions" in raw else None,
        fields=tuple(_field(each, common) for each in nested) if nested is not None else None,
    )


STRUCT_DEFAULT = object()  # a struct whose fields all have their defaults


def _default(raw: Any, type_name: str, array: bool) -> Any:
    if raw == "null":
        return None
    if array:
        return []
    if type_name == "string":
        return raw or ""
    if type_name == "bool":
        return str(raw).lower() == "true"
    if type_name in ("bytes", "records"):
        return b""
    if type_name == "uuid":
        return bytes(16)
    if type_name == "float64":
        return float(raw or 0)
    if type_name[0].isupper():
        return STRUCT_DEFAULT
    return int(str(raw or 0), 0)
