"""Finding coordinators: every version of FindCoordinator, and what makes a client look again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.client.scripted import CLOSE, ScriptedBroker, api_versions, metadata
from tests.support.waiting import WAIT_S

from ottla.client.cluster import Cluster
from ottla.client.coordinator import Coordinator, CoordinatorKind
from ottla.client.errors import UnsupportedApi
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.options import ShareOptions
from ottla.model.errors import ApiError, ErrorCode
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.shares.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from ottla.wire.messages.topics.metadata import MetadataRequest
from ottla.wire.messages.txns.end_txn import EndTxnRequest, EndTxnResponse

REQUEST = EndTxnRequest(transactional_id="t", producer_id=1, producer_epoch=0, committed=True)


def finds(broker: ScriptedBroker, *codes: ErrorCode) -> Callable[..., FindCoordinatorResponse]:
    """This broker is the coordinator of everything, after these errors."""
    errors = list(codes)

    def answer(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        code = errors.pop(0) if errors else ErrorCode.NONE
        if version < 4:
            assert request.key == "t"
            return FindCoordinatorResponse(error_code=code, node_id=1, host="127.0.0.1", port=broker.port)
        found = [
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=1, host="127.0.0.1", port=broker.port, error_code=code, error_message=None
            )
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=found)

    return answer


def with_coordinator(
    test: Callable[[ScriptedBroker, Coordinator], Awaitable[None]], kind: CoordinatorKind = CoordinatorKind.TRANSACTION
) -> None:
    async def run() -> None:
        async with ScriptedBroker() as broker:
            broker.answers |= {
                MetadataRequest: metadata(broker),
                FindCoordinatorRequest: finds(broker),
                EndTxnRequest: ends(),
            }
            options = ClientOptions(parse_bootstrap(broker.bootstrap), retry_backoff_ms=1, retry_backoff_max_ms=2)
            async with asyncio.timeout(WAIT_S), Cluster(options) as cluster:
                await test(broker, Coordinator(cluster, "t", kind))

    asyncio.run(run())


def ends(*acts: Any) -> Callable[[EndTxnRequest], Any]:
    waiting = list(acts)

    def answer(request: EndTxnRequest) -> Any:
        act = waiting.pop(0) if waiting else ErrorCode.NONE
        return act if act is CLOSE else EndTxnResponse(error_code=act, producer_id=1, producer_epoch=1)

    return answer


async def call(coordinator: Coordinator) -> int:
    answer = await coordinator.call(REQUEST, error_of=lambda each: each.error_code)
    return answer.error_code


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_every_version(version: int) -> None:
    async def test(broker: ScriptedBroker, coordinator: Coordinator) -> None:
        broker.answers[ApiVersionsRequest] = api_versions({FindCoordinatorRequest.key: (0, version)})
        assert await call(coordinator) == 0
        assert await call(coordinator) == 0
        (asked,) = broker.of(FindCoordinatorRequest)
        assert asked.key_type == 1
        assert broker.connections == 2, "one of its own, besides the one that found it"

    with_coordinator(test)


@pytest.mark.parametrize(("kind", "version"), [(CoordinatorKind.TRANSACTION, 0), (CoordinatorKind.SHARE, 5)])
def test_a_broker_that_is_too_old(kind: CoordinatorKind, version: int) -> None:
    async def test(broker: ScriptedBroker, coordinator: Coordinator) -> None:
        broker.answers[ApiVersionsRequest] = api_versions({FindCoordinatorRequest.key: (0, version)})
        with pytest.raises(UnsupportedApi, match="cannot find coordinators"):
            await call(coordinator)

    with_coordinator(test, kind)


@pytest.mark.parametrize("act", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, CLOSE])
def test_it_is_found_anew(act: Any) -> None:
    async def test(broker: ScriptedBroker, coordinator: Coordinator) -> None:
        broker.answers[EndTxnRequest] = ends(act)
        assert await call(coordinator) == 0
        assert len(broker.of(FindCoordinatorRequest)) == 2

    with_coordinator(test)


@pytest.mark.parametrize("act", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS])
def test_it_needs_a_moment(act: ErrorCode) -> None:
    async def test(broker: ScriptedBroker, coordinator: Coordinator) -> None:
        broker.answers[EndTxnRequest] = ends(act, act, act)
        assert await call(coordinator) == 0
        assert len(broker.of(EndTxnRequest)) == 4
        assert len(broker.of(FindCoordinatorRequest)) == 1

    with_coordinator(test)


def test_it_comes_into_being() -> None:
    async def test(broker: ScriptedBroker, coordinator: Coordinator) -> None:
        broker.answers[FindCoordinatorRequest] = finds(broker, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert await call(coordinator) == 0
        assert len(broker.of(FindCoordinatorRequest)) == 2
        broker.answers[FindCoordinatorRequest] = finds(broker, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        coordinator.forget()
        with pytest.raises(ApiError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await call(coordinator)

    with_coordinator(test)


def test_what_does_not_pass_is_the_callers_to_read() -> None:
    async def test(broker: ScriptedBroker, coordinator: Coordinator) -> None:
        broker.answers[EndTxnRequest] = ends(ErrorCode.INVALID_TXN_STATE)
        assert await call(coordinator) == ErrorCode.INVALID_TXN_STATE

    with_coordinator(test)


def test_closing_ends_what_waits() -> None:
    async def test(broker: ScriptedBroker, coordinator: Coordinator) -> None:
        arrived = asyncio.Event()

        def silent(request: EndTxnRequest) -> None:
            arrived.set()

        broker.answers[EndTxnRequest] = silent
        waiting = asyncio.create_task(coordinator.call(REQUEST, repeatable=False))
        await arrived.wait()
        coordinator.close()
        with pytest.raises(Exception, match="was closed"):
            await waiting

    with_coordinator(test)


@pytest.mark.parametrize("act", [ErrorCode.COORDINATOR_NOT_AVAILABLE, CLOSE])
def test_what_is_said_again_is_said_in_full(act: Any) -> None:
    """The first may have been heard, and its answer, which told something, lost."""

    async def test(broker: ScriptedBroker, coordinator: Coordinator) -> None:
        broker.answers[EndTxnRequest] = ends(act)
        full = EndTxnRequest(transactional_id="t", producer_id=2, producer_epoch=0, committed=True)
        answer = await coordinator.call(REQUEST, error_of=lambda each: each.error_code, again=lambda: full)
        assert answer.error_code == 0
        assert [request.producer_id for request in broker.of(EndTxnRequest)] == [1, 2]

    with_coordinator(test)


def test_share_member_asks_for_its_assignment_again() -> None:
    """A heartbeat whose answer was lost is repeated with the subscription, which the assignment is the answer to."""

    async def run() -> None:
        async with ScriptedBroker() as broker:
            lost = iter([False, True])

            def heartbeat(request: ShareGroupHeartbeatRequest) -> Any:
                if request.member_epoch > 0 and next(lost, False):
                    return CLOSE
                return ShareGroupHeartbeatResponse(error_code=0, member_epoch=1, heartbeat_interval_ms=5)

            broker.answers |= {
                MetadataRequest: metadata(broker),
                FindCoordinatorRequest: finds(broker),
                ShareGroupHeartbeatRequest: heartbeat,
            }
            options = ClientOptions(parse_bootstrap(broker.bootstrap), retry_backoff_ms=1, retry_backoff_max_ms=2)
            async with asyncio.timeout(WAIT_S), Cluster(options) as cluster:
                consumer = ShareConsumer(cluster, ShareOptions(group_id="t", heartbeat_interval_ms=5))
                consumer.subscribe(["t"])
                while len(broker.of(ShareGroupHeartbeatRequest)) < 5:
                    await consumer.poll(timeout_ms=5)
                await consumer.close()
            said = [request.subscribed_topic_names for request in broker.of(ShareGroupHeartbeatRequest)]
            assert said[:5] == [["t"], None, None, ["t"], None]  # joined, heard, lost, again, heard

    asyncio.run(run())
