"""Calls of the registry's REST API for the commands: one connection per call, errors as one line."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from ottla.cli.profile.chosen import registry_access, registry_or_profile
from ottla.operations.errors import CommandError

DEFAULT_URL = "http://127.0.0.1:8081"
SCHEMA_NOT_FOUND, SUBJECT_NOT_FOUND, VERSION_NOT_FOUND = 40403, 40401, 40402
_TIMEOUT_S = 30.0
_USER_INFO = "basic.auth.user.info"

Url = Annotated[
    str,
    typer.Option(
        "--registry",
        "--url",
        "-u",
        envvar="OTTLA_REGISTRY",
        help="The registry: http://HOST:PORT.",
        callback=registry_or_profile,
    ),
]


class RegistryRefused(CommandError):
    """The registry refused a request; `code` is Confluent's error code."""

    def __init__(self, code: int, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint or _HINTS.get(code))
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

    @property
    def shown_url(self) -> str:
        """The URL without the user and the password that may be in it."""
        from ottla.client.profiles import shown_url

        return shown_url(self.url) or ""

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
        from ottla.client.security.web import http_connection

        access = registry_access()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json", **access.headers(self._parts)}
        connection = http_connection(self._parts, _TIMEOUT_S, access.tls)
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, target, payload, headers)
            answer = connection.getresponse()
            status, text = answer.status, answer.read()
        except ssl.SSLCertVerificationError as error:
            from ottla.client.security.tls_failures import certificate_problem

            raise CommandError(
                f"the registry at {self.shown_url} is not trusted: {certificate_problem(error)}",
                "schema.registry.ssl.truststore.location, in a profile or a --command-config file, names its authority",
            ) from None
        except (http.client.RemoteDisconnected, http.client.BadStatusLine, ConnectionResetError) as error:
            other = "https" if self._parts.scheme == "http" else "http"
            raise CommandError(
                f"what listens at {self.shown_url} does not answer in {self._parts.scheme}: {error}",
                f"does it speak {other}? --registry {other}://… names it so",
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise CommandError(
                f"no registry answers at {self.shown_url}: {error}",
                "`ottla up` and `ottla registry` start one; --registry names another",
            ) from None
        finally:
            connection.close()
        if status == http.client.UNAUTHORIZED:
            who = access.user(self._parts)
            raise RegistryRefused(
                status,
                f"the registry at {self.shown_url} "
                + ("refuses a request without a login" if who is None else f"refuses the login of user {who}"),
                f"{_USER_INFO}=USER:PASSWORD, in a profile or a --command-config file, says who asks",
            )
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
