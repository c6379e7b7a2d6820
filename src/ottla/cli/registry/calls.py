"""Calls of the registry's REST API for the commands, by the client of the registry: one attempt, errors as one line."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ottla.cli.profile.chosen import registry_access, registry_or_profile
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.client.registry import RegistryError, SchemaRegistry

T = TypeVar("T")

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
        return self.ask(lambda registry: registry.call(method, *path, body=body, **query))

    def ask(self, question: Callable[[SchemaRegistry], T]) -> T:
        """What the client of the registry answers; its errors as one line."""
        from ottla.client.registry import RegistryError, RegistryOptions, RegistryUnreachable, SchemaRegistry

        access = registry_access()
        options = RegistryOptions.of(self.url, access, timeout_s=_TIMEOUT_S, attempts=1)
        try:
            return question(SchemaRegistry(options))
        except RegistryError as error:
            raise self._refused(error, access.user(self._parts)) from None
        except RegistryUnreachable as error:
            raise self._unreachable(error.__cause__) from None

    def _refused(self, error: RegistryError, user: str | None) -> RegistryRefused:
        if error.status != http.client.UNAUTHORIZED:
            return RegistryRefused(error.code or error.status, error.message)
        who = "refuses a request without a login" if user is None else f"refuses the login of user {user}"
        hint = f"{_USER_INFO}=USER:PASSWORD, in a profile or a --command-config file, says who asks"
        return RegistryRefused(error.status, f"the registry at {self.shown_url} {who}", hint)

    def _unreachable(self, cause: BaseException | None) -> CommandError:
        where = self.shown_url
        if isinstance(cause, ssl.SSLCertVerificationError):
            from ottla.client.security.tls_failures import certificate_problem

            return CommandError(
                f"the registry at {where} is not trusted: {certificate_problem(cause)}",
                "schema.registry.ssl.truststore.location, in a profile or a --command-config file, names its authority",
            )
        if isinstance(cause, http.client.RemoteDisconnected | http.client.BadStatusLine | ConnectionResetError):
            other = "https" if self._parts.scheme == "http" else "http"
            return CommandError(
                f"what listens at {where} does not answer in {self._parts.scheme}: {cause}",
                f"does it speak {other}? --registry {other}://… names it so",
            )
        return CommandError(
            f"no registry answers at {where}: {cause}",
            "`ottla up` and `ottla registry` start one; --registry names another",
        )
