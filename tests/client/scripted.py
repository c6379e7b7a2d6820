"""A broker that says what a test wants it to say: a loopback server with one function per API.

`ScriptedBroker` decodes requests with Ottla's own codecs, hands them to `answers[RequestClass]`, and sends what comes
back: a response, None for silence, `CLOSE` to drop the connection, or raw bytes.
"""

import asyncio
import inspect
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from ottla.wire.api import request_class
from ottla.wire.compile import decoder
from ottla.wire.frame import response_parts
from ottla.wire.header import RequestHeader, request_header_version
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse

CLOSE = object()
TOPIC_ID = bytes(15) + b"\x07"

Answer = Callable[..., Any]


class ScriptedBroker:
    """One scripted node. Answers may be given or replaced while it runs."""

    def __init__(
        self, answers: Mapping[type[Request], Answer] | None = None, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
        self.answers: dict[type[Request], Answer] = {ApiVersionsRequest: api_versions(), **(answers or {})}
        self.requests: list[tuple[int, Request]] = []  # (version, message)
        self.connections = 0
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> "ScriptedBroker":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.drop()
        await self._server.wait_closed()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def drop(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def of(self, kind: type[Request]) -> list[Any]:
        """The requests of one API so far."""
        return [message for _, message in self.requests if isinstance(message, kind)]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                if not await self._respond(frame, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def _respond(self, frame: bytes, writer: asyncio.StreamWriter) -> bool:
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        kind = request_class(key)
        header, position = decoder(RequestHeader, request_header_version(key, version))(memoryview(frame), 0)
        message, _ = decoder(kind, version)(memoryview(frame), position)
        self.requests.append((version, message))
        answer = self.answers[kind]
        reply = answer(message, version) if len(inspect.signature(answer).parameters) == 2 else answer(message)
        if asyncio.iscoroutine(reply):
            reply = await reply
        if reply is CLOSE:
            return False
        if isinstance(reply, tuple):  # (response, version to encode it with)
            reply, version = reply
        if isinstance(reply, Response):
            for part in response_parts(reply, version, header.correlation_id):
                writer.write(bytes(part))
        elif isinstance(reply, bytes):
            writer.write(reply)
        return True


def api_versions(ranges: Mapping[int, tuple[int, int]] | None = None) -> Answer:
    """The usual ApiVersions answer: everything we know, with some ranges replaced."""
    from ottla.wire.api import API_NAMES

    known = {key: tuple(request_class(key).versions) for key in API_NAMES} | dict(ranges or {})
    keys = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in known.items()
    ]
    return lambda request: ApiVersionsResponse(error_code=0, api_keys=keys)


def metadata(broker: ScriptedBroker, partitions: int = 1, topics: tuple[str, ...] = ("t",)) -> Answer:
    """A Metadata answer: this broker leads everything."""
    ids = {name: (int.from_bytes(TOPIC_ID, "big") + index).to_bytes(16, "big") for index, name in enumerate(topics)}

    def answer(request: MetadataRequest) -> MetadataResponse:
        wanted = list(topics) if request.topics is None else [each.name or "" for each in request.topics]
        return MetadataResponse(
            brokers=[MetadataResponse.Broker(node_id=1, host="127.0.0.1", port=broker.port)],
            cluster_id="scripted",
            controller_id=1,
            topics=[
                MetadataResponse.Topic(
                    error_code=0 if name in ids else 3,
                    name=name,
                    topic_id=ids.get(name, bytes(16)),
                    partitions=[
                        MetadataResponse.Topic.Partition(
                            error_code=0,
                            partition_index=index,
                            leader_id=1,
                            leader_epoch=0,
                            replica_nodes=[1],
                            isr_nodes=[1],
                        )
                        for index in range(partitions if name in ids else 0)
                    ],
                )
                for name in wanted
            ],
        )

    return answer
