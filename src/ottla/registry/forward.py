"""One request to another registry, over HTTP.

Rules:
- A forwarded request is marked (`X-Forward`), and an instance that gets one and is not the leader refuses it: no loops.
- `following` chooses the target. Even so, the answer is not trusted: its length and its time are bounded, redirects are
  not followed, and only JSON is passed on.
- Credentials of the client are not sent: no other server must get them. Who the client is, and that this instance says
  so, is in headers of their own (`security/instances`), made anew for each attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import h11

from ottla.client.errors import AuthenticationError
from ottla.client.security.context import context_in_thread
from ottla.client.security.tls import Tls
from ottla.model import limits
from ottla.registry.security.caller import Caller
from ottla.registry.security.forward_seal import FORWARD_HEADER, SealedRequest
from ottla.registry.security.instances import Instances

SENT_ON = ("accept", "content-type")
_CONNECT_TIMEOUT_S = 3.0
_READ_BYTES = 64 * limits.KIB
_JSON = ("application/json", "application/vnd.schemaregistry.v1+json", "application/vnd.schemaregistry+json")


class ForwardedCall(NamedTuple):
    """A request to forward."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    caller: Caller | None = None  # None: clients are not asked who they are


class ForwardedReply(NamedTuple):
    """The answer of the other registry."""

    status: int
    content_type: str
    body: bytes


class NotForwarded(Exception):
    """No answer came; `maybe_applied` says whether the request may have arrived."""

    def __init__(self, message: str, *, maybe_applied: bool) -> None:
        super().__init__(message)
        self.maybe_applied = maybe_applied


class StrangeAnswer(Exception):
    """The answer is not one of a registry: a retry would not help."""


class RegistryForwarding:
    """Sends requests to other registries, a bounded number at a time."""

    def __init__(self, instances: Instances) -> None:
        self._instances = instances
        self._turns = asyncio.Semaphore(limits.FORWARDED_REQUESTS_MAX)

    async def send(self, url: str, call: ForwardedCall, timeout_s: float) -> ForwardedReply:
        """Send a request and return the answer, all within that time. Raises NotForwarded, StrangeAnswer and
        ForwardFailed.
        """
        until_s = asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(until_s):
                await self._turns.acquire()
        except TimeoutError:
            raise NotForwarded("too many requests are being forwarded", maybe_applied=False) from None
        try:
            return await self._send(url, call, until_s)
        finally:
            self._turns.release()

    async def _send(self, url: str, call: ForwardedCall, until_s: float) -> ForwardedReply:
        sent = SealedRequest.of(url, call.method, call.target, call.body)
        told = self._instances.headers(sent, call.caller)
        call = call._replace(headers={**call.headers, **told})
        reader, writer = await _connect(url, until_s, self._instances.tls)
        try:
            async with asyncio.timeout_at(until_s):
                return await _exchange(reader, writer, urlsplit(url).netloc, call)
        except TimeoutError:
            raise NotForwarded(f"{url} did not answer in time", maybe_applied=True) from None
        except (OSError, h11.RemoteProtocolError) as error:
            raise NotForwarded(f"{url} gave no answer: {error}", maybe_applied=True) from None
        except StrangeAnswer as strange:
            raise StrangeAnswer(f"{url} {strange}") from None
        finally:
            writer.transport.abort()


async def _connect(url: str, until_s: float, tls: Tls | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    to = urlsplit(url)
    secure = to.scheme == "https"
    port = to.port or (443 if secure else 80)
    try:
        context = await context_in_thread(tls or Tls()) if secure else None
        async with asyncio.timeout_at(min(asyncio.get_running_loop().time() + _CONNECT_TIMEOUT_S, until_s)):
            return await asyncio.open_connection(to.hostname, port, ssl=context, limit=_READ_BYTES)
    except AuthenticationError as error:
        raise NotForwarded(f"{url} cannot be reached: {error}", maybe_applied=False) from None
    except OSError as error:  # a timeout is an OSError
        raise NotForwarded(f"{url} cannot be reached: {error}", maybe_applied=False) from None


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, call: ForwardedCall
) -> ForwardedReply:
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_READ_BYTES)
    headers = {
        **call.headers,
        "host": host,
        "connection": "close",
        "content-length": str(len(call.body)),
        FORWARD_HEADER: "true",
    }
    for event in (
        h11.Request(method=call.method, target=call.target, headers=list(headers.items())),
        h11.Data(data=call.body),
        h11.EndOfMessage(),
    ):
        writer.write(http.send(event) or b"")
    await writer.drain()
    response: h11.Response | None = None
    body = bytearray()
    while True:
        match http.next_event():
            case h11.NEED_DATA:
                http.receive_data(await reader.read(_READ_BYTES))
            case h11.Response() as response:
                _check(response)
            case h11.Data(data=data):
                body += data
                if len(body) > limits.FORWARDED_ANSWER_BYTES_MAX:
                    raise StrangeAnswer(f"answered with more than {limits.FORWARDED_ANSWER_BYTES_MAX} bytes")
            case h11.EndOfMessage() if response is not None:
                return ForwardedReply(response.status_code, _content_type(response), bytes(body))
            case h11.ConnectionClosed():
                raise h11.RemoteProtocolError("it closed the connection")


def _check(response: h11.Response) -> None:
    if 300 <= response.status_code < 400:
        raise StrangeAnswer("answered with a redirect")
    if _content_type(response).partition(";")[0].strip().lower() not in _JSON:
        raise StrangeAnswer("answered with something that is not JSON")


def _content_type(response: h11.Response) -> str:
    found = next((value for name, value in response.headers if name == b"content-type"), b"")
    return bytes(found).decode("latin-1")
