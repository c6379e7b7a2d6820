"""ConsoleOptions: which cluster a console shows, where it listens, and what it allows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.registry import RegistryOptions
from ottla.client.security.sasl import PLAIN
from ottla.client.security.secret import LiteralSecret
from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS

if TYPE_CHECKING:
    from ottla.client.security.security import Security

CLIENT_ID = "ottla-console"
WITH_PASSWORD = (PLAIN, *SCRAM_MECHANISMS)
_CONNECT_MS = 5_000
_API_MS = 20_000
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """`security` is how brokers are reached; `signs_in` means that each visitor gives a user and a password for it,
    and without it everybody acts as the user of `security`.
    """

    bootstrap: str
    host: str = "127.0.0.1"
    port: int = 8090
    security: Security | None = field(default=None, repr=False)
    registry: RegistryOptions | None = None
    signs_in: bool = False
    read_only: bool = False
    # Names under which browsers may reach the console, beside the address that it listens at.
    names: tuple[str, ...] = ()
    # Files of a certificate and its key: the console serves HTTPS.
    certificate: str | None = None
    key: str | None = None

    @property
    def is_loopback(self) -> bool:
        return self.host in _LOOPBACK

    def client(self, user: str = "", password: str = "") -> ClientOptions:
        """The options of the clients of one user."""
        security = self.security
        if self.signs_in:
            assert security is not None, "only clusters with SASL have users"
            assert security.sasl is not None, "only clusters with SASL have users"
            sasl = replace(security.sasl, username=user, password=LiteralSecret(password), is_token=False)
            security = replace(security, sasl=sasl)
        return ClientOptions(
            parse_bootstrap(self.bootstrap),
            client_id=CLIENT_ID,
            connect_timeout_ms=_CONNECT_MS,
            api_timeout_ms=_API_MS,
            security=security,
        )

    def registry_of(self, user: str = "", password: str = "") -> RegistryOptions | None:
        """The options of the registry's client of one user."""
        if self.registry is None or not self.signs_in:
            return self.registry
        return replace(self.registry, auth=LiteralSecret(f"{user}:{password}"), token="")
