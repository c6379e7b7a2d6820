"""Settings that all client objects share: bootstrap addresses, time-outs, backoff.

Rules:
- Randomness and wall time enter here (`rng`, `now_ms`) and nowhere else, so that a simulated client replays.
- Names follow Kafka's client settings with the units last.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, cast

from ottla.client.checks import check_numbers, check_texts
from ottla.client.connection import Address
from ottla.model import limits
from ottla.model.hosts import is_host

if TYPE_CHECKING:
    from ottla.client.security.security import Security

# What `security` of a client may be: Kafka's settings (security.protocol, ssl.*, sasl.*), or what was read from them.
GivenSecurity: TypeAlias = "Security | Mapping[str, str] | None"
DEFAULT_PORT = 9092
_QUICK_LOOKS = 20  # about a second


def wall_clock_ms() -> int:
    """Return milliseconds since 1970, the time of records' timestamps."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Settings of the connections to one cluster."""

    bootstrap: tuple[Address, ...]
    client_id: str = "ottla"
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000
    # How long one call of the API may take in all, retries included (Kafka's default.api.timeout.ms).
    api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    max_response_bytes: int = limits.RESPONSE_FRAME_BYTES_MAX
    security: GivenSecurity = None
    rng: random.Random = field(default_factory=random.Random)
    now_ms: Callable[[], int] = wall_clock_ms

    def __post_init__(self) -> None:
        check_texts(self, "client_id")
        check_numbers(self, "connect_timeout_ms", "request_timeout_ms", "api_timeout_ms", "metadata_max_age_ms")
        check_numbers(self, "retry_backoff_ms", "retry_backoff_max_ms", "max_response_bytes")
        if self.security is not None:
            from ottla.client.security.security import as_security

            object.__setattr__(self, "security", as_security(self.security))

    @property
    def known_security(self) -> "Security | None":
        """`security` as it was read, None for plaintext."""
        return cast("Security | None", self.security)

    def backoff_ms(self, attempt: int) -> float:
        """Return the time to wait before retry `attempt` (1 is the first): doubling, bounded, with
        a fifth of jitter.
        """
        wait_ms: float = min(self.retry_backoff_ms << min(attempt - 1, 16), self.retry_backoff_max_ms)
        return wait_ms * self.rng.uniform(0.8, 1.2)

    def seeking_ms(self, attempt: int) -> float:
        """Return the time to wait before the next lookup of a leader or coordinator that has gone: another is elected
        within a fraction of a second, so the first lookups come quickly; then as `backoff_ms`.
        """
        if attempt <= _QUICK_LOOKS:
            return self.retry_backoff_ms * self.rng.uniform(0.4, 0.6)
        return self.backoff_ms(attempt - _QUICK_LOOKS)


def options_of(bootstrap: str | Sequence[str | Address] | ClientOptions, security: GivenSecurity) -> ClientOptions:
    """Return the options for what a client's constructor was given: addresses or options, and `security`."""
    if not isinstance(bootstrap, ClientOptions):
        return ClientOptions(parse_bootstrap(bootstrap), security=security)
    if security is None:
        return bootstrap
    if bootstrap.security is not None:
        raise TypeError("security is given twice: in ClientOptions, and as an argument")
    return replace(bootstrap, security=security)


def parse_bootstrap(text: str | Sequence[str | Address]) -> tuple[Address, ...]:
    """Parse `host:port,host:port`; the port may be left out. Raises `ValueError` if it is invalid."""
    parts = text.split(",") if isinstance(text, str) else text
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str | Address) for part in parts):
        raise TypeError(f'the address of a broker is text, as "127.0.0.1:9092", or a list of such, not {text!r}')
    addresses = tuple(part if isinstance(part, Address) else parse_address(part) for part in parts if part)
    if not addresses:
        raise ValueError("no broker address given")
    return addresses


def parse_address(text: str, default_port: int = DEFAULT_PORT) -> Address:
    """Parse `host`, `host:port`, `[v6]:port` or `PROTOCOL://host:port`."""
    rest = text.strip().rpartition("://")[2]
    if rest.startswith("["):
        host, bracket, port = rest[1:].partition("]")
        port = port.removeprefix(":")
        if not bracket:
            raise ValueError(f"{text!r} has no ] behind the address")
    elif rest.count(":") > 1:
        host, port = rest, ""  # a bare IPv6 address
    else:
        host, _, port = rest.partition(":")
    if not host:
        raise ValueError(f"{text!r} names no host")
    if not is_host(host):
        raise ValueError(f"{host!r} in {text!r} is not the name of a host")
    if not port:
        return Address(host, default_port)
    if not (port.isascii() and port.isdecimal()) or not 0 <= int(port) <= 65_535:
        raise ValueError(f"{port!r} in {text!r} is not a port")
    return Address(host, int(port))
