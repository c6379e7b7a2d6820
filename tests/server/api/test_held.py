"""Requests in slices keep their turn on the connection; what changes something is carried out for who left, too."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import weakref
from collections.abc import Callable, Generator
from typing import Any

import pytest
from tests.server.storages import facades_of

from ottla.server.api import dispatch
from ottla.server.api.context import Context, Peer
from ottla.server.api.dispatcher import Dispatcher, intercepting
from ottla.server.api.portions import Portions, in_portions
from ottla.server.loop.later import Disconnect
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.net.connection import ServerConnection
from ottla.server.storage.cold_reads import ColdReads
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
LARGE = DeleteTopicsRequest(topic_names=[f"{number}" * 5_000 for number in range(20)], timeout_ms=1)
CROWDED = DeleteTopicsRequest(topic_names=["t"] * 6_000, timeout_ms=1)


class Served:
    """A connection; `handlers` answer its requests by their type."""

    def __init__(self, handlers: dict[type, Callable[[Any, Context], Any]]) -> None:
        loop = asyncio.get_running_loop()
        runtime = Runtime(loop, now_ms=lambda: 0, rng=random.Random(1))
        self.slices = runtime.slices
        self.handled: list[type] = []

        def intercept(_: object, request: Any, context: Context) -> Any:
            self.handled.append(type(request))
            return handlers[type(request)](request, context)

        facades = facades_of(runtime)
        ours, self.theirs = socket.socketpair()
        ours.setblocking(False)
        self.memory = RequestMemory(-1)
        self.connection = ServerConnection(
            ours,
            runtime,
            ColdReads(loop, runtime.disk_threads(1), lambda partition: None),
            Dispatcher(dispatch.ROUTES, None, intercepting(intercept)),
            lambda connection: Context(facades, Peer("", ("", 0), ("", 0)), connection),
            self.memory,
            1 << 20,
            lambda _: None,
        )

    def send(self, *requests: Any) -> None:
        versions = {ApiVersionsRequest: 3, DeleteTopicsRequest: 3}
        for number, request in enumerate(requests):
            self.theirs.sendall(request_frame(request, versions[type(request)], number, "c"))

    async def until(self, condition: Callable[[], Any]) -> None:
        for _ in range(10_000):
            if condition():
                return
            await asyncio.sleep(0)
        raise AssertionError("it does not come")

    async def close(self) -> None:
        self.connection.close()
        self.theirs.close()
        await self.slices.close()


def hello(*_: object) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=0, api_keys=[])


def deleting(deleted: list[str]) -> Callable[[Any, Context], Any]:
    def delete(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
        deleted.extend(request.topic_names)
        told = [DeleteTopicsResponse.DeletableTopicResult(name=name, error_code=0) for name in request.topic_names]
        return DeleteTopicsResponse(responses=told)

    return in_portions(Portions("topic_names", "responses", 2), delete)


def test_what_is_begun_is_carried_out_though_its_client_has_left() -> None:
    async def run() -> None:
        deleted: list[str] = []
        served = Served({DeleteTopicsRequest: deleting(deleted)})
        served.send(LARGE)
        await served.until(lambda: deleted)
        assert len(deleted) < 20
        served.connection.close()
        assert served.connection._inbound.holds_memory, "its request is still in use"
        await served.until(lambda: len(deleted) == 20)
        await served.until(lambda: not served.connection._inbound.holds_memory)
        await served.close()

    asyncio.run(run())


def test_its_connection_is_freed_then_without_the_garbage_collector() -> None:
    async def run() -> None:
        deleted: list[str] = []
        served = Served({DeleteTopicsRequest: deleting(deleted)})
        served.send(LARGE)
        await served.until(lambda: deleted)
        served.connection.close()
        view = weakref.ref(served.connection)
        del served.connection
        await served.until(lambda: len(deleted) == 20)
        await served.until(lambda: view() is None)
        served.theirs.close()
        await served.slices.close()

    gc.collect()
    gc.disable()
    try:
        asyncio.run(run())
    finally:
        gc.enable()


def test_what_follows_waits_until_it_is_carried_out() -> None:
    async def run() -> None:
        deleted: list[str] = []
        served = Served({DeleteTopicsRequest: deleting(deleted), ApiVersionsRequest: hello})
        served.send(LARGE, HELLO)
        await served.until(lambda: len(deleted) > 10)
        assert served.handled == [DeleteTopicsRequest]
        await served.until(lambda: served.handled == [DeleteTopicsRequest, ApiVersionsRequest])
        assert len(deleted) == 20
        await served.close()

    asyncio.run(run())


def test_what_only_reads_is_given_up_with_its_client() -> None:
    async def run() -> None:
        steps: list[int] = []

        def reading() -> Generator[None, None, ApiVersionsResponse]:
            for number in range(1000):
                steps.append(number)
                yield
            return hello()

        served = Served({ApiVersionsRequest: lambda *_: served.slices.answer(reading())})
        served.send(HELLO)
        await served.until(lambda: len(steps) > 3)
        served.connection.close()
        await served.until(lambda: not served.connection._inbound.holds_memory)
        assert len(steps) < 10
        await served.close()

    asyncio.run(run())


def test_nothing_goes_on_after_the_node_has_stopped() -> None:
    async def run() -> None:
        deleted: list[str] = []
        served = Served({DeleteTopicsRequest: deleting(deleted)})
        served.send(LARGE)
        await served.until(lambda: deleted)
        served.slices.soon(lambda: deleted.append("later"))
        await served.close()
        count = len(deleted)
        await asyncio.sleep(0.01)
        assert len(deleted) == count < 20

    asyncio.run(run())


@pytest.mark.parametrize("fails", [False, True])
def test_a_request_without_an_answer_that_is_held_counts_as_memory(fails: bool) -> None:
    """Its records wait for a slow disk, and acks=0."""

    def hold(_: object, context: Context) -> None:
        context.hold()
        if fails:
            raise Disconnect("a produce with acks=0 failed")

    async def run() -> None:
        served = Served({DeleteTopicsRequest: hold})
        served.send(LARGE)
        await served.until(lambda: served.handled)
        await served.until(lambda: served.connection.closed is fails)
        for holder in tuple(served.memory.holders):
            holder.shrink()
        assert served.memory.used_bytes > 0, "others who wait for memory do not get this"
        served.connection.context.let_go()
        for holder in tuple(served.memory.holders):
            holder.shrink()
        assert served.memory.used_bytes == 0
        await served.close()

    asyncio.run(run())


@pytest.mark.parametrize("stays", [True, False])
def test_a_request_that_is_decoded_in_slices_is_begun_if_its_client_is_still_there(stays: bool) -> None:
    async def run() -> None:
        deleted: list[str] = []
        served = Served({DeleteTopicsRequest: deleting(deleted), ApiVersionsRequest: hello})
        served.send(CROWDED, HELLO)
        await served.until(lambda: served.connection.context.holds)
        assert not served.handled
        if not stays:
            served.connection.close()
            await served.until(lambda: not served.connection.context.holds)
            assert not served.handled
        else:
            await served.until(lambda: served.handled == [DeleteTopicsRequest, ApiVersionsRequest])
            assert len(deleted) == 6_000
        await served.close()

    asyncio.run(run())
