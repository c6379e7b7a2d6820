"""Bare connections for one asyncio program that acts as many members: it sends prepared frames and reads responses in
order.

There are no retries and no other logic: the broker gets exactly what the workload sends, and the program uses little
CPU.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar, cast

import uvloop

from ottla.wire import compile, header
from ottla.wire.api import response_class
from ottla.wire.frame import request_frame
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

T = TypeVar("T")
GROUP_RESOURCE = 32
FIND_COORDINATOR, HEARTBEAT, METADATA, ALTER_CONFIGS = 6, 4, 12, 1
NOT_YET = (14, 15, 16)  # error codes: coordinator loading, not available, not coordinator


class Pipe(asyncio.Protocol):
    """One connection. A broker answers in order, so the next response belongs to the oldest request without one."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[memoryview]] = deque()
        self._kept = b""
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(cls, bootstrap: str) -> Pipe:
        host, port = bootstrap.split(":")
        _, pipe = await asyncio.get_running_loop().create_connection(cls, host, int(port))
        return pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_exception(ConnectionError("closed by the broker"))

    def data_received(self, data: bytes) -> None:
        if self._kept:
            data = self._kept + data
        at, end = 0, len(data)
        view = memoryview(data)
        while end - at >= 4:
            size = int.from_bytes(view[at : at + 4], "big")
            if end - at - 4 < size:
                break
            self._waiting.popleft().set_result(view[at + 4 : at + 4 + size])
            at += 4 + size
        self._kept = data[at:]

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def send(self, frame: bytes) -> asyncio.Future[memoryview]:
        """Send a frame; the future response, from its correlation id on."""
        assert self._transport is not None
        future: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._transport.write(frame)
        return future

    async def ask(self, message: Any, version: int) -> Any:
        """Send one request; its decoded response."""
        return decode(type(message).key, version, await self.send(frame_of(message, version)))


def frame_of(message: Any, version: int) -> bytes:
    return request_frame(message, version, 1, "bench")


def decode(key: int, version: int, body: memoryview) -> Any:
    start = 5 if header.response_header_version(key, version) >= 1 else 4
    return compile.decoder(response_class(key), version)(body, start)[0]


def drive(program: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the client program on the fastest event loop available, because it must not be what is measured."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(program())


async def open_all(bootstrap: str, count: int) -> list[Pipe]:
    return [await Pipe.open(bootstrap) for _ in range(count)]


async def wait_for_coordinators(pipe: Pipe, groups: list[str]) -> None:
    """Wait for the coordinators: Kafka creates the offsets topic on first use, and loads it a moment later."""
    await pipe.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=groups), FIND_COORDINATOR)
    for group in groups:
        beat = HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")
        for _ in range(600):
            if (await pipe.ask(beat, HEARTBEAT)).error_code not in NOT_YET:
                break
            await asyncio.sleep(0.05)
        else:
            raise TimeoutError(f"no coordinator of {group}")


async def configure_group(pipe: Pipe, group: str, **settings: str) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    listed = [
        resource.AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in settings.items()
    ]
    changed = resource(resource_type=GROUP_RESOURCE, resource_name=group, configs=listed)
    answer = await pipe.ask(IncrementalAlterConfigsRequest(resources=[changed], validate_only=False), ALTER_CONFIGS)
    assert answer.responses[0].error_code == 0, answer


async def topic_id(pipe: Pipe, name: str) -> bytes:
    request = MetadataRequest(topics=[MetadataRequest.Topic(name=name)], allow_auto_topic_creation=False)
    (topic,) = (await pipe.ask(request, METADATA)).topics
    assert topic.error_code == 0, topic
    found: bytes = topic.topic_id
    return found


def shares_of(partitions: int, members: int) -> Iterator[list[int]]:
    """Neighbouring partitions for each member, as the range assignor assigns them."""
    each, rest = divmod(partitions, members)
    start = 0
    for at in range(members):
        size = each + (at < rest)
        yield list(range(start, start + size))
        start += size
