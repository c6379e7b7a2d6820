"""The options of typed columns: the subject, its version and the registry, for keys and for values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.client.registry import RegisteredVersion, RegistryOptions, SchemaRegistry
from ottla.client.security.registry_settings import registry_security
from ottla.schemas.schema import SchemaType
from ottla.spark.options import (
    KAFKA_PREFIX,
    REGISTRY_TLS_PREFIX,
    SCHEMA_REGISTRY_BASIC_AUTH_CREDENTIALS_SOURCE,
    SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO,
    SCHEMA_REGISTRY_BEARER_AUTH_CREDENTIALS_SOURCE,
    SCHEMA_REGISTRY_BEARER_AUTH_TOKEN,
    SCHEMA_REGISTRY_URL,
)

TYPES = {"avro": SchemaType.AVRO, "json": SchemaType.JSON, "protobuf": SchemaType.PROTOBUF}
REGISTRY_URL = SCHEMA_REGISTRY_URL.name
_CREDENTIALS = (
    SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO.name,
    SCHEMA_REGISTRY_BASIC_AUTH_CREDENTIALS_SOURCE.name,
    SCHEMA_REGISTRY_BEARER_AUTH_TOKEN.name,
    SCHEMA_REGISTRY_BEARER_AUTH_CREDENTIALS_SOURCE.name,
)


class SideSettings(NamedTuple):
    """The options of keys, or of values. `subject` is None if it is not given and cannot be named after one topic."""

    name: str
    format: str
    subject: str | None
    schema: str | None
    version: str
    message: str
    version_given: bool = False

    @property
    def record_name(self) -> str:
        """The name for a record or message type that is derived from columns, made from the subject."""
        plain = re.sub(r"[^A-Za-z0-9]+", "_", self.subject or self.name).strip("_")
        return "".join(part[:1].upper() + part[1:] for part in plain.split("_")) if plain else "Record"

    def registered(self, registry: SchemaRegistry) -> RegisteredVersion:
        """The schema to read with."""
        if self.subject is None:
            raise ValueError(f"{self.name}.subject is needed: the topics do not say one subject")
        if self.version == "latest":
            return registry.latest(self.subject)
        if not self.version.isdigit():
            raise ValueError(f"{self.name}.version: a number or latest is expected, not {self.version!r}")
        return registry.version(self.subject, int(self.version))


def of_side(name: str, format: str, given: Mapping[str, str], topics: Sequence[str]) -> SideSettings:
    """The options of keys, or of values (`name`). The names in `given` are in lower case. Raises ValueError."""
    if format not in TYPES:
        raise ValueError(f"{name}.format: one of avro, json, protobuf, raw, string is expected, not {format!r}")
    subject = given.get(f"{name}.subject") or (f"{topics[0]}-{name}" if len(topics) == 1 else None)
    return SideSettings(
        name,
        format,
        subject,
        given.get(f"{name}.schema"),
        given.get(f"{name}.version", "latest").strip().lower(),
        given.get(f"{name}.message", "").strip(),
        f"{name}.version" in given,
    )


def registry_of(given: Mapping[str, str]) -> SchemaRegistry | None:
    """The registry of the options; None if they name none."""
    urls = given.get(REGISTRY_URL)
    if not urls:
        return None
    security = {
        name.lower(): value
        for name, value in given.items()
        if name.lower() in _CREDENTIALS or name.lower().startswith(REGISTRY_TLS_PREFIX)
    }
    cluster = {name.removeprefix(KAFKA_PREFIX): value for name, value in given.items() if name.startswith(KAFKA_PREFIX)}
    return SchemaRegistry(RegistryOptions.of(urls, registry_security(security, cluster)))
