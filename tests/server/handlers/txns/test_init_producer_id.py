"""InitProducerId, in every version; and what producers are told while there are no ids."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.cluster.bench import broker
from tests.server.admin import Admin

from ottla.cluster.commands.allocate_producer_ids import ProducerIdBlock
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.loop.later import Later
from ottla.server.quorum.producer_ids import ProducerIds
from ottla.sim.world.disk import DiskFaults, SimDisk
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest


@pytest.fixture
def admin() -> Admin:
    return Admin()


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id(admin: Admin, version: int) -> None:
    def ask(transactional_id: str | None, **more: int) -> tuple[int, int, int]:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000, **more)
        answer = admin.ask(request, version)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    assert [ask(None), ask(None)] == [(0, 0, 0), (0, 1, 0)]
    assert ask("") == (ErrorCode.INVALID_REQUEST, -1, -1)
    if version >= 3:
        assert ask(None, producer_id=5) == (ErrorCode.INVALID_REQUEST, -1, -1)
        assert ask(None, producer_id=5, producer_epoch=3) == (0, 2, 0)


def test_no_producer_ids_from_a_disk_that_fails() -> None:
    disk = SimDisk(faults=DiskFaults())
    admin = Admin({"data": disk})
    disk.faults.read_only = True
    answer = admin.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
    assert (answer.error_code, answer.producer_id) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


@pytest.mark.parametrize("code", ["NOT_CONTROLLER", "STALE_BROKER_EPOCH", "BROKER_ID_NOT_REGISTERED"])
def test_a_producer_tries_again_while_its_broker_has_no_controller(code: str) -> None:
    """To what is told between brokers and controllers, Java's producers and librdkafka's transactions would give up."""
    refused: Later[Any] = Later()
    refused.set(ApiError(ErrorCode[code]))
    unused: Any = None
    quorum: Any = SimpleNamespace(is_alone=False)
    metadata: Any = SimpleNamespace(node_id=1, state=SimpleNamespace(brokers={1: broker(1)}))
    controller: Any = SimpleNamespace(active=True, submit=lambda _: refused)
    told: list[ApiError | None] = []
    ProducerIds(unused, quorum, metadata, controller, unused).ready().then(told.append, pytest.fail)
    assert [error and error.code for error in told] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


def test_a_block_of_ids_that_will_not_come_is_asked_for_again() -> None:
    asked: list[Later[Any]] = []

    def submit(_: object) -> Later[Any]:
        asked.append(Later())
        return asked[-1]

    unused: Any = None
    quorum: Any = SimpleNamespace(is_alone=False)
    metadata: Any = SimpleNamespace(node_id=1, state=SimpleNamespace(brokers={1: broker(1)}))
    controller: Any = SimpleNamespace(active=True, submit=submit)
    ids = ProducerIds(unused, quorum, metadata, controller, unused)
    first = ids.ready()
    asked[0].fail()
    error = first.taken()
    assert error is not None and error.code == ErrorCode.UNKNOWN_SERVER_ERROR
    second = ids.ready()
    asked[1].set(ProducerIdBlock(7_000, 1_000))
    assert second.taken() is None
    assert ids.next_producer_id() == 7_000
