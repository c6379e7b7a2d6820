"""What a connection does in one turn of the loop: how much it reads, and which answers leave together."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from ottla.model import limits
from ottla.server.api import dispatch
from ottla.server.api.dispatcher import Dispatcher, intercepting
from ottla.server.loop.later import Later
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.net.connection import ServerConnection
from ottla.server.storage.cold_reads import ColdReads
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse

CLIENT_ID = "c" * 2_000
HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")


class Socket:
    """As much of it arrives at once as the reader has room for."""

    def __init__(self) -> None:
        self.arrived = bytearray()
        self.sent: list[bytes] = []

    def fileno(self) -> int:
        return 7

    def recv_into(self, space: memoryview) -> int:
        if not self.arrived:
            raise BlockingIOError
        count = min(len(space), len(self.arrived))
        space[:count] = self.arrived[:count]
        del self.arrived[:count]
        return count

    def send(self, data: Any) -> int:
        self.sent.append(bytes(data))
        return len(data)

    def sendmsg(self, pieces: list[Any]) -> int:
        return self.send(b"".join(pieces))

    def close(self) -> None:
        self.sent.append(b"closed")


class Loop:
    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def time(self) -> float:
        return 0.0

    def add_reader(self, *_: object) -> None: ...

    def remove_reader(self, *_: object) -> None: ...

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class Served:
    """A connection whose requests are answered by `handle`."""

    def __init__(self, handle: Callable[[], Any]) -> None:
        self.sock, self.loop = Socket(), Loop()
        self.handled = 0
        self.left: list[ServerConnection] = []  # what the connection limits hear of

        def intercept(*_: object) -> Any:
            self.handled += 1
            return handle()

        peer = SimpleNamespace(controller=False, remote_address="somebody")
        context: Any = SimpleNamespace(connection=peer, client_id="", when_closed={}, holds=0, end=lambda: None)
        runtime = Runtime(self.loop, now_ms=lambda: 0, rng=random.Random(1))
        self.connection = ServerConnection(
            self.sock,
            runtime,
            ColdReads(self.loop, runtime.disk_threads(1), lambda partition: None),
            Dispatcher(dispatch.ROUTES, None, intercepting(intercept)),
            lambda connection: context,
            RequestMemory(-1),
            1 << 20,
            self.left.append,
        )

    def ask(self, count: int) -> None:
        for number in range(count):
            self.sock.arrived += request_frame(HELLO, 3, number, CLIENT_ID)

    def read(self) -> None:
        self.connection._readable()


def no_answer() -> None:
    return None


def test_a_turn_takes_all_that_has_arrived() -> None:
    served = Served(no_answer)
    served.ask(100)
    assert len(served.sock.arrived) > 3 * limits.RECEIVE_BUFFER_BYTES
    served.read()
    assert served.handled == 100


def test_a_turn_ends_with_a_read_that_found_less_than_it_had_room_for() -> None:
    served = Served(no_answer)
    served.ask(1)
    served.sock.recv_into, calls = _counted(served.sock.recv_into)  # type: ignore[method-assign]
    served.read()
    assert served.handled == 1
    assert len(calls) == 1


def _counted(function: Callable[..., Any]) -> tuple[Callable[..., Any], list[object]]:
    calls: list[object] = []

    def counting(*arguments: Any) -> Any:
        calls.append(arguments)
        return function(*arguments)

    return counting, calls


def test_a_flood_leaves_the_others_their_turn() -> None:
    served = Served(no_answer)
    served.ask(2_000)
    arrived = len(served.sock.arrived)
    served.read()
    taken = arrived - len(served.sock.arrived)
    assert limits.RECEIVE_PER_TURN_BYTES <= taken <= limits.RECEIVE_PER_TURN_BYTES + limits.RECEIVE_BUFFER_BYTES
    while served.sock.arrived:
        served.read()
    assert served.handled == 2_000


def waiting(count: int) -> tuple[Served, list[Later[Any]]]:
    answers: list[Later[Any]] = []

    def handle() -> Later[Any]:
        answers.append(Later())
        return answers[-1]

    served = Served(handle)
    served.ask(count)
    served.read()
    assert len(answers) == count
    return served, answers


def test_answers_given_together_leave_together() -> None:
    served, (first, second, third) = waiting(3)
    first.set(ApiVersionsResponse(error_code=0, api_keys=[]))
    second.set(ApiVersionsResponse(error_code=0, api_keys=[]))
    assert not served.sock.sent
    served.loop.turn()
    assert len(served.sock.sent) == 1
    third.set(ApiVersionsResponse(error_code=0, api_keys=[]))
    assert len(served.sock.sent) == 2, "nobody waits behind it: it leaves at once"
    assert len(served.sock.sent[0]) == 2 * len(served.sock.sent[1])
    served.loop.turn()
    assert len(served.sock.sent) == 2


def test_an_answer_that_was_given_leaves_before_the_connection_is_closed() -> None:
    served, (first, _) = waiting(2)
    first.set(ApiVersionsResponse(error_code=0, api_keys=[]))
    served.connection.close()
    assert len(served.sock.sent) == 2
    assert served.sock.sent[1] == b"closed"
    served.loop.turn()
    assert len(served.sock.sent) == 2


def test_work_that_cannot_be_stopped_keeps_no_connection_open() -> None:
    served, answers = waiting(3)
    stopped: list[int] = []

    def fail() -> None:
        raise ValueError

    for number, answer in enumerate(answers):
        answer.on_abandon = fail if number == 1 else partial(stopped.append, number)
    served.connection.context.when_closed.update({"bad": fail, "good": partial(stopped.append, 3)})
    served.connection.close()
    assert stopped == [0, 2, 3]
    assert served.left == [served.connection], "it is counted no more"
