"""Lag of a group: each partition has its own outcome, whatever is wrong with another's offset or records."""

from collections.abc import Awaitable, Callable

import pytest
from tests.client.memory_cluster import GARBLE, POISON, MemoryBrokers, MemoryClient, run
from tests.support.outcomes import codes

from ottla import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.groups import PartitionLag
from ottla.client.outcomes import Outcomes
from ottla.model.errors import ErrorCode
from ottla.wire.message import Request
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.records.fetch import FetchRequest

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def with_group(test: Callable[[MemoryBrokers, Admin], Awaitable[None]]) -> None:
    """A group that has read half of two topics of ten records."""

    async def main() -> None:
        brokers = MemoryBrokers()
        for partition in (A, B):
            brokers.make(partition.topic, 1)
            brokers.log(partition).append(5)
            brokers.log(partition).append(5)
            brokers.committed[partition] = 5
        async with MemoryClient(brokers) as cluster:
            await test(brokers, Admin(cluster))

    run(main)


def only_b(outcomes: Outcomes[TopicPartition, PartitionLag]) -> None:
    assert outcomes.found.keys() == {B} and outcomes.failed.keys() == {A}
    assert outcomes.found[B].records == 5 and outcomes.found[B].seconds is not None


@pytest.mark.parametrize("what", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, GARBLE, POISON])
def test_records_that_cannot_be_read(what: ErrorCode) -> None:
    async def test(brokers: MemoryBrokers, admin: Admin) -> None:
        asked: list[Request] = []

        def fault(request: Request) -> object:
            if isinstance(request, FetchRequest):
                asked.append(request)
                return what, A.__eq__
            return None

        brokers.fault = fault  # type: ignore[assignment]
        only_b(await admin.groups.lag_each("g"))
        assert len(asked) <= 2, "what is known is not read on"

    with_group(test)


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNSTABLE_OFFSET_COMMIT])
def test_an_offset_that_is_not_told(code: ErrorCode) -> None:
    async def test(brokers: MemoryBrokers, admin: Admin) -> None:
        brokers.fault = lambda request: (code, A.__eq__) if isinstance(request, OffsetFetchRequest) else None
        outcomes = await admin.groups.lag_each("g", [A])
        only_b(outcomes)
        assert codes(outcomes) == {A: code}

    with_group(test)


def test_an_offset_that_is_told_a_little_later() -> None:
    async def test(brokers: MemoryBrokers, admin: Admin) -> None:
        asked: list[Request] = []

        def fault(request: Request) -> object:
            if isinstance(request, OffsetFetchRequest):
                asked.append(request)
                return (ErrorCode.UNSTABLE_OFFSET_COMMIT, A.__eq__) if len(asked) < 4 else None
            return None

        brokers.fault = fault  # type: ignore[assignment]
        assert (await admin.groups.lag_each("g")).all().keys() == {A, B}

    with_group(test)


@pytest.mark.parametrize(("start", "has_time"), [(8, True), (10, False)])
def test_what_retention_deletes_meanwhile(start: int, has_time: bool) -> None:
    """The records are owed still; their time is that of the first that is left, if there is one."""

    async def test(brokers: MemoryBrokers, admin: Admin) -> None:
        def fault(request: Request) -> None:
            if isinstance(request, FetchRequest):
                brokers.log(A).start = start

        brokers.fault = fault
        lags = (await admin.groups.lag_each("g")).all()
        assert {at: lag.records for at, lag in lags.items()} == {A: 5, B: 5}
        assert (lags[A].seconds is not None) == has_time and lags[B].seconds is not None

    with_group(test)
