"""CertificateWatch: warns of the certificates of a listener that have expired or are about to, at start and daily."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from ottla.client.errors import AuthenticationError
from ottla.client.security.stores import read_store
from ottla.client.security.tls import Tls
from ottla.model import limits
from ottla.security.certificate_facts import read_certificates

log = logging.getLogger(__name__)


class CertificateWatch:
    def __init__(self, listener: str) -> None:
        self._listener = listener
        self._looked_at: Tls | None = None
        self._stamp: object = None
        self._next_ms = 0

    def look(self, tls: Tls, stamp: object, now_ms: int) -> None:
        """Look at the certificates if they are new, or a day has passed; it reads files, so a worker does it."""
        if tls is self._looked_at and stamp == self._stamp and now_ms < self._next_ms:
            return
        self._looked_at, self._stamp = tls, stamp
        self._next_ms = now_ms + limits.CERTIFICATE_LOOK_MS
        if tls.certificate is None:
            return
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        try:
            found = read_certificates(read_store(tls.certificate).certificates)
        except (ValueError, AuthenticationError):
            return  # the listener has said already why it cannot be used
        for each in found:
            problem = each.problem(now)
            if problem is not None:
                loud = log.error if each.days_left(now) < 0 else log.warning
                loud(
                    "listener %s: the certificate %s %s; write a new one to %s, without a restart",
                    self._listener,
                    each.subject,
                    problem,
                    tls.certificate.path or tls.certificate.setting,
                )
