"""A client of any schema registry that speaks Confluent's REST API: blocking, on the standard library alone.

Rules:
- Several URLs are several instances of one registry: if one does not answer, the next is tried.
- Transient failures (no connection, 429, 5xx) are retried a bounded number of times; the registry's own errors are
  raised as they are.
- A schema never changes under its id or version, so fetched schemas are cached (bounded, oldest out first). Threads
  may share the cache.
- An instance may be behind the one that assigned an id a moment ago. So an id that is not found is requested once
  more, a moment later. The ids that are still not found are counted: after a bounded number of them there is no second
  request any more, so that a topic full of invalid ids does not cost a moment for each.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID

from ottla.client.registry_url import parse_registry_url
from ottla.client.security.registry_settings import RegistrySecurity, registry_security
from ottla.client.security.secret import Secret
from ottla.client.security.tls import Tls
from ottla.client.security.tls_failures import certificate_problem
from ottla.client.security.web import http_connection
from ottla.model.limits import (
    REGISTRY_ANSWER_BYTES_MAX,
    REGISTRY_REFERENCES_MAX,
    REGISTRY_SCHEMAS_CACHED_MAX,
    REGISTRY_WAITS_IN_VAIN_MAX,
)
from ottla.schemas.schema import InvalidSchema, Reference, SchemaSource, SchemaType

T = TypeVar("T")
Json: TypeAlias = Any  # a decoded answer, which may be anything

_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_TRY_AGAIN = frozenset({429, 500, 502, 503, 504})
NOT_FOUND = 404
_MISSING = object()  # not in the cache


class RegistryError(Exception):
    """An error of the registry: its HTTP status, its own error code, its message."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message

    def __str__(self) -> str:
        return f"the schema registry answered {self.code or self.status}: {self.message}"

    @property
    def is_not_found(self) -> bool:
        """Whether the registry says that the resource does not exist. A 404 without an error code is not from the
        registry: another server answers at this address.
        """
        return self.status == NOT_FOUND and self.code // 100 == NOT_FOUND


class RegistryUnreachable(ConnectionError):
    """No instance answered in time."""


class RegisteredVersion(NamedTuple):
    """A schema as one version of a subject."""

    subject: str
    version: int
    schema_id: int
    source: SchemaSource


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """Addresses and time-outs of the registry. `auth` is `user:password`, `token` a bearer token; both may name an
    environment variable (`env:NAME`) or a file (`file:PATH`). `behind_s` is how long an instance may be behind another.
    """

    urls: tuple[str, ...] = field(repr=False)  # one may have a password in it
    auth: str | Secret = field(default="", repr=False)
    token: str | Secret = field(default="", repr=False)
    tls: Tls | None = None  # for https; None: the authorities of the operating system
    timeout_s: float = 10.0
    attempts: int = 4
    backoff_s: float = 0.2
    behind_s: float = 1.0

    @classmethod
    def of(
        cls, urls: str, security: RegistrySecurity | Mapping[str, str] | None = None, **more: Any
    ) -> RegistryOptions:
        """Make options from comma-separated URLs. `security` are Confluent's settings: basic.auth.*, bearer.auth.*,
        schema.registry.ssl.*. Raises ValueError if one is invalid.
        """
        listed = tuple(url.strip().rstrip("/") for url in urls.split(",") if url.strip())
        for url in listed:
            parse_registry_url(url)
        if not listed:
            raise ValueError("no URL of a schema registry is given")
        if security is not None:
            read = security if isinstance(security, RegistrySecurity) else registry_security(security)
            more |= {"auth": read.auth or "", "token": read.token or "", "tls": read.tls}
        return cls(listed, **more)


class SchemaRegistry:
    """Sends requests to the registry. Picklable, without its cache."""

    def __init__(self, options: RegistryOptions) -> None:
        self.options = options
        self._kept: OrderedDict[tuple[object, ...], object] = OrderedDict()
        self._in_vain: set[str] = set()  # paths that were requested again, and still not found

    def __reduce__(self) -> tuple[object, ...]:
        return SchemaRegistry, (self.options,)

    def by_id(self, schema_id: int, subject: str = "") -> SchemaSource:
        """Return the schema of an id (in the context of a subject, if one is named)."""
        path = f"/schemas/ids/{schema_id}" + (f"?subject={quote(subject, safe='')}" if subject else "")
        return self._source_at(("id", schema_id, subject), path)

    def by_guid(self, guid: UUID) -> SchemaSource:
        """Return the schema of a GUID."""
        return self._source_at(("guid", guid), f"/schemas/guids/{guid}")

    def by_id_or_guid(self, schema: int | UUID) -> SchemaSource:
        """Return the schema that a record names."""
        return self.by_id(schema) if isinstance(schema, int) else self.by_guid(schema)

    def latest(self, subject: str) -> RegisteredVersion:
        """Return the newest version of a subject; not cached."""
        return self._registered(self._ask("GET", _version_path(subject, "latest")))

    def version(self, subject: str, version: int) -> RegisteredVersion:
        """Return one version of a subject."""
        path = _version_path(subject, version)
        return self._cached(("version", subject, version), lambda: self._registered(self._ask("GET", path)))

    def register(self, subject: str, source: SchemaSource, *, normalize: bool = False) -> int:
        """Return the id of a schema under a subject; register it if it is new, and compatible."""
        key = ("registered", subject, source.text, source.type, source.references, normalize)
        path = f"/subjects/{quote(subject, safe='')}/versions" + ("?normalize=true" if normalize else "")
        return self._cached(key, lambda: int(self._ask("POST", path, request_of(source))["id"]))

    def lookup(self, subject: str, source: SchemaSource) -> RegisteredVersion:
        """Return the version under which a schema is registered in a subject. Raises
        RegistryError(404) if it is not.
        """
        return self._registered(self._ask("POST", f"/subjects/{quote(subject, safe='')}", request_of(source)))

    def incompatibilities(self, subject: str, source: SchemaSource) -> list[str]:
        """Return why a schema could not become the next version of a subject; empty if it could (or would be the
        first).
        """
        path = f"/compatibility/subjects/{quote(subject, safe='')}/versions/latest?verbose=true"
        try:
            answer = self._ask("POST", path, request_of(source))
        except RegistryError as error:
            if error.status == NOT_FOUND:
                return []
            raise
        if answer["is_compatible"]:
            return []
        return [str(each) for each in answer.get("messages") or ["it is not compatible"]]

    def subjects(self) -> list[str]:
        """Return all subjects."""
        found: list[str] = self._ask("GET", "/subjects")
        return found

    def call(self, method: str, *segments: object, body: object = None, **query: object) -> Json:
        """Send one request of the REST API: the segments of its path, and its query. `registry_calls` has names for
        those that manage subjects.
        """
        path = "".join(f"/{quote(str(each), safe='')}" for each in segments)
        texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
        return self._ask(method, f"{path}?{urlencode(texts)}" if texts else path, body)

    # --- answers ---

    def _source_at(self, key: tuple[object, ...], path: str) -> SchemaSource:
        return self._cached(key, lambda: self._source(self._identified(path)))

    def _cached(self, key: tuple[object, ...], ask: Callable[[], T]) -> T:
        found = self._kept.get(key, _MISSING)
        if found is not _MISSING:
            return cast("T", found)
        made = self._kept[key] = ask()
        with suppress(KeyError):  # another thread has made room already
            while len(self._kept) > REGISTRY_SCHEMAS_CACHED_MAX:
                self._kept.popitem(last=False)
        return made

    def _identified(self, path: str) -> Json:
        try:
            return self._ask("GET", path)
        except RegistryError as error:
            if not error.is_not_found or path in self._in_vain or len(self._in_vain) == REGISTRY_WAITS_IN_VAIN_MAX:
                raise
        self._pause(self.options.behind_s)
        try:
            return self._ask("GET", path)
        except RegistryError as error:
            if error.is_not_found:
                self._in_vain.add(path)
            raise

    def _registered(self, answer: Json) -> RegisteredVersion:
        source = self._source(answer)
        return RegisteredVersion(answer["subject"], answer["version"], answer["id"], source)

    def _source(self, answer: Json) -> SchemaSource:
        if not isinstance(answer, dict) or not isinstance(answer.get("schema"), str):
            raise RegistryError(200, 0, "what answers there is no schema registry")
        references = tuple(
            Reference(each["name"], each["subject"], each["version"]) for each in answer.get("references") or ()
        )
        resolved: dict[str, str] = {}
        self._resolve(references, resolved, [])
        kind = answer.get("schemaType", SchemaType.AVRO.value)
        if kind not in [each.value for each in SchemaType]:
            raise InvalidSchema(f"its type is {kind}, none of {', '.join(each.value for each in SchemaType)}")
        return SchemaSource(answer["schema"], SchemaType(kind), references, resolved)

    def _resolve(self, references: tuple[Reference, ...], resolved: dict[str, str], path: list[Reference]) -> None:
        """Resolve references to their texts, those that they need first."""
        for reference in references:
            if reference in path or len(resolved) > REGISTRY_REFERENCES_MAX:
                raise InvalidSchema(f"the references of {reference.subject} do not end")
            if reference.name in resolved:
                continue
            answer = self._referred(reference)
            below = tuple(
                Reference(each["name"], each["subject"], each["version"]) for each in answer.get("references") or ()
            )
            self._resolve(below, resolved, [*path, reference])
            resolved[reference.name] = answer["schema"]

    def _referred(self, reference: Reference) -> Json:
        try:
            return self._ask("GET", _version_path(reference.subject, reference.version))
        except RegistryError as error:
            if not error.is_not_found:
                raise
            what = f"{reference.name} (version {reference.version} of {reference.subject})"
            raise InvalidSchema(f"it refers to {what}, which the registry does not have") from error

    # --- requests ---

    def _ask(self, method: str, path: str, body: object = None) -> Json:
        failure: Exception | None = None
        for attempt in range(self.options.attempts):
            if attempt:
                self._pause(self.options.backoff_s * 2 ** (attempt - 1))
            for url in self.options.urls:
                try:
                    return self._ask_one(url, method, path, body)
                except RegistryError as error:
                    if error.status not in _TRY_AGAIN:
                        raise
                    failure = error
                except ssl.SSLCertVerificationError as error:  # it does not become valid by asking again
                    raise RegistryUnreachable(
                        f"the schema registry is not trusted: {certificate_problem(error)} "
                        "(schema.registry.ssl.truststore.location)"
                    ) from error
                except (OSError, http.client.HTTPException) as error:
                    failure = error
        if isinstance(failure, RegistryError):
            raise failure
        where = ", ".join(f"{urlsplit(url).hostname}:{urlsplit(url).port}" for url in self.options.urls)
        raise RegistryUnreachable(f"the schema registry at {where} does not answer: {failure}") from failure

    def _ask_one(self, url: str, method: str, path: str, body: object) -> Json:
        text = None if body is None else json.dumps(body).encode()
        status, reason, data = self._exchange(url, method, path, text)
        if len(data) > REGISTRY_ANSWER_BYTES_MAX:
            raise RegistryError(status, 0, f"an answer of more than {REGISTRY_ANSWER_BYTES_MAX} bytes")
        try:
            decoded = json.loads(data) if data or status >= 300 else None
        except ValueError:
            raise RegistryError(status, 0, data[:200].decode("utf-8", "replace") or reason) from None
        if status >= 300:
            said = decoded if isinstance(decoded, dict) else {}
            raise RegistryError(status, int(said.get("error_code", 0)), str(said.get("message") or reason))
        return decoded

    # --- replaced in simulations ---

    def _exchange(self, url: str, method: str, path: str, body: bytes | None) -> tuple[int, str, bytes]:
        """Send one request over HTTP; return status, reason and body of the answer (at most one byte more than the
        bound).
        """
        parts = urlsplit(url)
        connection = http_connection(parts, self.options.timeout_s, self.options.tls)
        try:
            connection.request(method, parts.path + path, body, self._headers(url))
            answer = connection.getresponse()
            return answer.status, answer.reason, answer.read(REGISTRY_ANSWER_BYTES_MAX + 1)
        finally:
            connection.close()

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def _headers(self, url: str) -> dict[str, str]:
        headers = {"Accept": f"{_CONTENT_TYPE}, application/json", "Content-Type": _CONTENT_TYPE}
        security = RegistrySecurity(Secret.of(self.options.auth), Secret.of(self.options.token))
        return headers | security.headers(urlsplit(url))


def _version_path(subject: str, version: int | str) -> str:
    # A version that other schemas refer to may have been (softly) deleted since.
    deleted = "?deleted=true" if isinstance(version, int) else ""
    return f"/subjects/{quote(subject, safe='')}/versions/{version}{deleted}"


def request_of(source: SchemaSource) -> dict[str, object]:
    """The body of a request that has a schema."""
    body: dict[str, object] = {"schema": source.text}
    if source.type is not SchemaType.AVRO:
        body["schemaType"] = source.type.value
    if source.references:
        body["references"] = [reference._asdict() for reference in source.references]
    return body
