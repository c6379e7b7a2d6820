"""Calls of the registry's REST API for the commands: one connection per call, errors as one line."""

from __future__ import annotations

import http.client
import json
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from ottla.cli.terminal.plain import CommandError

DEFAULT_URL = "http://127.0.0.1:8081"
SCHEMA_NOT_FOUND, SUBJECT_NOT_FOUND, VERSION_NOT_FOUND = 40403, 40401, 40402
_TIMEOUT_S = 30.0

Url = Annotated[
    str, typer.Option("--registry", "--url", "-u", envvar="OTTLA_REGISTRY", help="The registry: http://HOST:PORT.")
]


class RegistryRefused(CommandError):
    """The registry refused a request; `code` is Confluent's error code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message, _HINTS.get(code))
        self.code = code


_HINTS = {
    SUBJECT_NOT_FOUND: "`ottla schema list` shows the subjects",
    VERSION_NOT_FOUND: "`ottla schema list` shows the latest versions",
    40405: "delete it first without --permanent",
    409: "`ottla schema diff SUBJECT FILE` shows what changed",
    40901: "`ottla schema diff SUBJECT FILE` shows what changed",
}


class RegistryCalls:
    """Calls to one registry, by its URL."""

    def __init__(self, url: str) -> None:
        from ottla.client.registry_url import parse_registry_url  # the client is imported only by commands that need it

        self.url = url if "://" in url else f"http://{url}"
        try:
            self._parts = parse_registry_url(self.url)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--registry") from None

    def get(self, *path: object, **query: object) -> Any:
        return self.call("GET", path, query)

    def post(self, body: Any, *path: object, **query: object) -> Any:
        return self.call("POST", path, query, body)

    def delete(self, *path: object, **query: object) -> Any:
        return self.call("DELETE", path, query)

    def call(self, method: str, path: tuple[object, ...], query: dict[str, object], body: Any = None) -> Any:
        target = self._parts.path.rstrip("/") + "".join(f"/{quote(str(each), safe='')}" for each in path)
        texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
        if texts:
            target += f"?{urlencode(texts)}"
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=_TIMEOUT_S)
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, target, payload, {"Content-Type": "application/vnd.schemaregistry.v1+json"})
            answer = connection.getresponse()
            status, text = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise CommandError(
                f"no registry answers at {self.url}: {error}",
                "`ottla up` and `ottla registry` start one; --url names another",
            ) from None
        finally:
            connection.close()
        return _content(status, text)


def _content(status: int, text: bytes) -> Any:
    try:
        content = json.loads(text) if text else None
    except ValueError:
        raise CommandError(f"the registry answered {status} with something that is not JSON") from None
    if status >= 300:
        found = content if isinstance(content, dict) else {}
        raise RegistryRefused(
            int(found.get("error_code", status)), str(found.get("message") or f"HTTP status {status}")
        )
    return content
