"""HttpsListener: the TLS of the registry's port, with the settings and the principals of a broker's listener.

A certificate is replaced without a restart: the files are looked at now and then. A certificate that has expired, or is
about to, is warned of at start and daily. The TLS context of a listening port cannot be exchanged, so it is one that
begins each connection with the newest context. TLS sessions belong to the context that began them: after a change no
client resumes a session whose certificate was accepted before it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable

from ottla.model import limits
from ottla.model.config import Config
from ottla.model.settings.security import SSL_CLIENT_AUTH
from ottla.security.principal import ANONYMOUS, Principal
from ottla.server.security.listener_tls import ListenerTls

log = logging.getLogger(__name__)


class _NewestContext(ssl.SSLContext):
    """A context in whose place each connection begins with the newest one."""

    _newest: Callable[[], ssl.SSLContext]

    def __new__(cls, newest: Callable[[], ssl.SSLContext]) -> _NewestContext:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        made._newest = newest
        return made

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return self._newest().wrap_bio(incoming, outgoing, server_side, server_hostname, session)


class HttpsListener:
    """Raises ApiError (INVALID_CONFIG) if the settings do not allow TLS."""

    def __init__(self, config: Config, now_ms: Callable[[], int]) -> None:
        self._config = config
        self._now_ms = now_ms
        self._tls = ListenerTls("https", config, config[SSL_CLIENT_AUTH])
        self._tls.check()
        self._tls.look_at_time(now_ms())
        self.context: ssl.SSLContext = _NewestContext(lambda: self._tls.context)
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    def principal_in(self, certificate: bytes | None) -> Principal | None:
        """Return the principal of a client's certificate; None without one. Raises NoMatchingRule, ValueError."""
        found = self._tls.principal_in(certificate)
        return None if found == ANONYMOUS else found

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(limits.CERTIFICATE_LOOK_INTERVAL_S)
            try:
                await asyncio.to_thread(self._tls.refresh, self._config, self._config[SSL_CLIENT_AUTH])
                await asyncio.to_thread(self._tls.look_at_time, self._now_ms())
            except Exception:
                log.exception("the certificate of the https listener could not be looked at; it is tried again")
