"""Sources of OAUTHBEARER tokens: a file, a token endpoint (OAuth's client credentials), a function of the program.

Rule: `token()` blocks, so callers with an event loop call it in a thread. A source raises AuthenticationError if asking
again would not help, and NotConnected if it may.
"""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlencode, urlsplit

from ottla.client.errors import AuthenticationError, NotConnected
from ottla.client.security.secret import Secret
from ottla.client.security.stores import reveal
from ottla.client.security.tls import Tls
from ottla.client.security.web import bounded_connection
from ottla.model import limits

# A token is replaced when it has lived for so much of its time (Kafka's sasl.login.refresh.window.factor).
_REFRESH_AFTER: Final = 0.8


@dataclass(eq=False, slots=True)
class _KeptToken:
    """The token of one endpoint. The thread that holds `lock` may fetch it; others that need the same token wait."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    text: str = ""
    use_until_s: float = 0.0  # time.monotonic


_lock = threading.Lock()  # guards `_kept` alone; it is not held while a token is fetched
_kept: dict[TokenEndpoint, _KeptToken] = {}  # in the order of their last use


class TokenSource(Protocol):
    def token(self) -> str:
        """Return a token that is valid now."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file that somebody else keeps fresh, as Kubernetes does; read for each authentication."""

    path: str

    def token(self) -> str:
        try:
            return Path(self.path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise AuthenticationError(f"the token file {self.path} cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class TokenFunction:
    """A function of the program that returns a token."""

    provider: Callable[[], object]

    def token(self) -> str:
        try:
            found = self.provider()
        except Exception as error:
            raise AuthenticationError(f"the token provider failed: {error}") from error
        if not isinstance(found, str) or not found:
            raise AuthenticationError("the token provider returned no token")
        return found


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """A token that nobody has signed, as Kafka's login module makes it for development."""

    claims: tuple[tuple[str, str], ...]
    lifetime_s: int = 3_600

    def token(self) -> str:
        now_s = int(time.time())
        claims = dict(self.claims) | {"iat": now_s, "exp": now_s + self.lifetime_s}
        parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
        return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


@dataclass(frozen=True, slots=True)
class TokenPatience:
    """How long a client waits for a token endpoint, and how long it tries again (Kafka's `sasl.login.*`).

    Unless a wait between two tries is given, it tries once: whoever needs the token tries again later, in any case.
    """

    connect_s: float | None = None  # None: `limits.TOKEN_READ_S`
    read_s: float | None = None  # of the whole answer, likewise
    backoff_s: float | None = None  # the first wait; each is twice as long as the one before
    retry_for_s: float = 10.0  # no try begins later than this after the first

    def waits(self, now_s: Callable[[], float]) -> Iterator[float]:
        """Yield how long to wait before each further try, as Kafka does."""
        ends_s, wait_s = now_s() + self.retry_for_s, self.backoff_s or 0.0
        while wait_s > 0 and (left_s := ends_s - now_s()) > 0:
            yield min(wait_s, left_s)
            wait_s *= 2


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """An identity provider's token endpoint. Connections share a token until it has to be renewed."""

    url: str
    client_id: str
    client_secret: Secret
    scope: str = ""
    tls: Tls | None = None  # None: the authorities of the operating system
    patience: TokenPatience = TokenPatience()

    def token(self) -> str:
        with _lock:
            kept = _kept[self] = _kept.pop(self) if self in _kept else _KeptToken()
            while len(_kept) > limits.TOKENS_KEPT_MAX:
                _kept.pop(next(iter(_kept)))
        with kept.lock:
            if time.monotonic() >= kept.use_until_s:
                kept.text, lifetime_s = self._fetch_patiently()
                kept.use_until_s = time.monotonic() + lifetime_s * _REFRESH_AFTER
            return kept.text

    def _fetch_patiently(self) -> tuple[str, float]:
        waits = self.patience.waits(time.monotonic)
        while True:
            try:
                return self._fetch()
            except NotConnected:
                wait_s = next(waits, None)
                if wait_s is None:
                    raise
            time.sleep(wait_s)

    def _fetch(self) -> tuple[str, float]:
        where = f"the token endpoint {urlsplit(self.url).netloc.rpartition('@')[2]}"
        try:
            status, data = self._post()
        except (OSError, http.client.HTTPException) as error:
            raise NotConnected(f"{where} does not answer: {error}") from None
        if status >= 500 or status == 429:
            raise NotConnected(f"{where} answered with status {status}")
        try:
            answer = json.loads(data)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise AuthenticationError(f"{where} answered with status {status}, and not with a token")
        if status >= 300:
            why = answer.get("error_description") or answer.get("error") or f"status {status}"
            raise AuthenticationError(f"{where} refused the client {self.client_id}: {why}")
        token, lifetime_s = answer.get("access_token"), answer.get("expires_in", 0)
        if not isinstance(token, str) or not token:
            raise AuthenticationError(f"{where} answered without an access_token")
        return token, float(lifetime_s) if isinstance(lifetime_s, int | float) else 0.0

    def _post(self) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        secret = reveal(self.client_secret, "the client secret of OAUTHBEARER")
        basic = base64.b64encode(f"{self.client_id}:{secret}".encode()).decode()
        headers = {
            "Authorization": f"Basic {basic}",
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        patience = self.patience
        read_s = limits.TOKEN_READ_S if patience.read_s is None else patience.read_s
        connect_s = limits.TOKEN_READ_S if patience.connect_s is None else patience.connect_s
        with bounded_connection(parts, read_s, self.tls, connect_s=connect_s) as connection:
            connection.request("POST", path, urlencode(form), headers)
            answer = connection.getresponse()
            return answer.status, answer.read(limits.TOKEN_ANSWER_BYTES_MAX)
