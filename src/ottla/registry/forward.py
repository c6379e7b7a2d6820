"""Handing a request to the leader, over HTTP, one hop at most.

Rules:
- A forwarded request says so (`X-Forward`), and whoever gets one and is not the leader refuses it: no circles.
- What surely did not arrive is repeated; what may have arrived is repeated only where that does no harm, which is
  everywhere but with DELETE (its second answer would be that there is nothing to delete).
"""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import urlsplit

from ottla.model import limits

FORWARD_HEADER = "X-Forward"
_CONNECT_TIMEOUT_S = 3.0


class Call(NamedTuple):
    """A request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """An answer as it is given back."""

    status: int
    content_type: str | None
    body: bytes


class NotForwarded(Exception):
    """No answer came; `maybe_applied` says whether the request may have arrived."""

    def __init__(self, message: str, *, maybe_applied: bool) -> None:
        super().__init__(message)
        self.maybe_applied = maybe_applied


class Forwarding:
    """Calls to other registries, on threads of their own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(limits.FORWARDED_REQUESTS_MAX, thread_name_prefix="forward")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def send(self, url: str, call: Call, timeout_s: float) -> Reply:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _send, url, call, timeout_s)


def _send(url: str, call: Call, timeout_s: float) -> Reply:
    to = urlsplit(url)
    kind = http.client.HTTPSConnection if to.scheme == "https" else http.client.HTTPConnection
    connection = kind(to.hostname or "", to.port, timeout=min(_CONNECT_TIMEOUT_S, timeout_s))
    try:
        try:
            connection.connect()
        except OSError as error:
            raise NotForwarded(f"{url} cannot be reached: {error}", maybe_applied=False) from None
        connection.sock.settimeout(timeout_s)
        try:
            connection.request(call.method, call.target, call.body, {**call.headers, FORWARD_HEADER: "true"})
            answer = connection.getresponse()
            return Reply(answer.status, answer.getheader("Content-Type"), answer.read())
        except (OSError, http.client.HTTPException) as error:
            raise NotForwarded(f"{url} gave no answer: {error}", maybe_applied=True) from None
    finally:
        connection.close()
