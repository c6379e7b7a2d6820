"""The link to the active controller, without a cluster around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.address import Address
from ottla.client.errors import NotConnected, RequestTimedOut
from ottla.model.errors import ErrorCode
from ottla.server.quorum.controller_link import ControllerLink, error_of_whole
from ottla.server.quorum.not_controller import NotController
from ottla.wire.messages.cluster.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

REQUEST = AllocateProducerIdsRequest(broker_id=1, broker_epoch=1)


def response(code: ErrorCode) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=code, producer_id_start=0, producer_id_len=0)


class Cluster:
    """Stands for the quorum, its metadata and the other nodes. Node `n` listens at port `n`."""

    def __init__(self, answers: dict[int, Callable[[], Any]]) -> None:
        self.leader_id, self.epoch, self.active = 2, 1, False
        self.answers = answers
        self.asked: list[int] = []
        self.changed = asyncio.Event()

    def leader_address(self) -> Address | None:
        return Address("localhost", self.leader_id) if self.leader_id >= 0 else None

    def elect(self, leader_id: int) -> None:
        self.leader_id, self.epoch = leader_id, self.epoch + 1
        self.changed.set()
        self.changed.clear()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self.changed.wait()

    async def ask(self, address: Address, request: Any, **_: Any) -> Any:
        self.asked.append(address.port)
        answer = self.answers[address.port]()
        return await answer if asyncio.iscoroutine(answer) else answer

    async def handle_here(self, request: Any) -> Any:
        self.asked.append(1)
        return self.answers[1]()


def ask(answers: dict[int, Callable[[], Any]], around: Callable[[Cluster], None], timeout_ms: int = 5_000) -> Any:
    """What the link answers, and which nodes it asked; `around` happens while it waits for the first answer."""

    async def test() -> tuple[Any, list[int]]:
        cluster: Any = Cluster(answers)
        loop = asyncio.get_running_loop()
        controller: Any = cluster
        link = ControllerLink(loop, cluster, cluster, controller, cluster, cluster.handle_here)
        loop.call_later(0.02, around, cluster)
        return await link.ask(REQUEST, errors=error_of_whole, timeout_ms=timeout_ms), cluster.asked

    return asyncio.run(test())


def nothing(_: Cluster) -> None:
    """The cluster stays as it is."""


def test_the_node_that_leads_is_asked() -> None:
    answer, asked = ask({2: lambda: response(ErrorCode.NONE)}, nothing)
    assert (answer.error_code, asked) == (ErrorCode.NONE, [2])


def test_other_errors_are_the_callers_business() -> None:
    answer, asked = ask({2: lambda: response(ErrorCode.STALE_BROKER_EPOCH)}, nothing)
    assert (answer.error_code, asked) == (ErrorCode.STALE_BROKER_EPOCH, [2])


def _lost() -> Any:
    raise NotConnected("gone")


async def _silence() -> Any:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    "first", [lambda: response(ErrorCode.NOT_CONTROLLER), _lost, _silence], ids=["refused", "lost", "silent"]
)
def test_the_next_controller_is_asked_as_soon_as_it_leads(first: Callable[[], Any]) -> None:
    answer, asked = ask({2: first, 3: lambda: response(ErrorCode.NONE)}, lambda cluster: cluster.elect(3))
    assert answer.error_code == ErrorCode.NONE
    assert asked[0] == 2 and asked[-1] == 3


def test_a_node_that_became_the_controller_asks_its_own_handler() -> None:
    outcomes = iter([NotController(), response(ErrorCode.NONE)])  # it was not ready at first

    def elected(cluster: Cluster) -> None:
        cluster.active = True
        cluster.elect(1)

    answer, asked = ask({1: lambda: next(outcomes), 2: _silence}, elected)
    assert (answer.error_code, asked) == (ErrorCode.NONE, [2, 1, 1])


def test_nobody_waits_longer_than_asked() -> None:
    with pytest.raises(RequestTimedOut, match="not the controller"):
        ask({2: lambda: response(ErrorCode.NOT_CONTROLLER)}, nothing, timeout_ms=100)
    with pytest.raises(RequestTimedOut, match="no controller is known"):
        ask({2: _lost}, lambda cluster: cluster.elect(-1), timeout_ms=200)
