"""The connection: negotiation, pipelining, bounds, and every way a peer can misbehave."""

import asyncio
from typing import Any

import pytest
from tests.client.scripted import CLOSE, ScriptedBroker, api_versions, metadata
from tests.support.ports import free_ports

from ottla.client.connection import Address, Connection
from ottla.client.errors import ConnectionLost, NotConnected, ProtocolError, RequestTimedOut, UnsupportedApi
from ottla.model import limits
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest


async def connect(broker: ScriptedBroker, **options: Any) -> Connection:
    return await Connection.open(Address("127.0.0.1", broker.port), **options)


def ask() -> MetadataRequest:
    return MetadataRequest(topics=None)


def run(test: Any) -> None:
    asyncio.run(test())


def test_negotiates_the_highest_common_version() -> None:
    async def test() -> None:
        async with ScriptedBroker({ApiVersionsRequest: api_versions({1: (4, 11), 22: (0, 6)})}) as broker:
            connection = await connect(broker)
            assert connection.version_of(FetchRequest) == 11
            assert connection.version_of(FetchRequest, at_most=7) == 7
            assert connection.version_of(MetadataRequest) == 13
            assert connection.version_of(InitProducerIdRequest) == 5  # v6 is unstable
            version, hello = broker.requests[0]
            assert version == 4 and hello.client_software_name == "ottla"
            connection.close()

    run(test)


@pytest.mark.parametrize("told", [(0, 2), None])
def test_an_older_broker_is_asked_in_the_version_it_names(told: tuple[int, int] | None) -> None:
    """KIP-511: UNSUPPORTED_VERSION comes as v0, with the range of ApiVersions or (before 2.4) without it."""

    def hello(request: ApiVersionsRequest, version: int) -> Any:
        keys = [] if told is None else [ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=told[1])]
        if version > 2:
            return ApiVersionsResponse(error_code=35, api_keys=keys), 0
        full = api_versions({18: (0, 2)})(request)
        return full

    async def test() -> None:
        async with ScriptedBroker({ApiVersionsRequest: hello}) as broker:
            connection = await connect(broker)
            assert [version for version, _ in broker.requests] == [4, 2 if told else 0]
            assert connection.version_of(MetadataRequest) == 13
            connection.close()

    run(test)


def test_a_broker_that_refuses_every_version_is_no_endless_loop() -> None:
    async def test() -> None:
        def refuse(request: ApiVersionsRequest) -> Any:
            return ApiVersionsResponse(error_code=35, api_keys=[]), 0

        async with ScriptedBroker({ApiVersionsRequest: refuse}) as broker:
            with pytest.raises(UnsupportedApi, match="ApiVersions"):
                await connect(broker)
            assert len(broker.requests) == 2

    run(test)


def test_no_common_version() -> None:
    async def test() -> None:
        ranges = {1: (30, 40), 3: (0, 1)}
        async with ScriptedBroker({ApiVersionsRequest: api_versions(ranges)}) as broker:
            connection = await connect(broker)
            with pytest.raises(UnsupportedApi, match="Fetch v30-v40"):
                connection.version_of(FetchRequest)
            del connection.versions[22]
            with pytest.raises(UnsupportedApi, match="does not serve InitProducerId"):
                connection.version_of(InitProducerIdRequest)
            connection.close()

    run(test)


def test_pipelined_requests_meet_their_answers() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            broker.answers[MetadataRequest] = lambda request: MetadataResponse(
                brokers=[], topics=[], cluster_id=request.topics[0].name
            )
            connection = await connect(broker)
            futures = [
                await connection.submit(MetadataRequest(topics=[MetadataRequest.Topic(name=str(n))])) for n in range(30)
            ]
            assert connection.in_flight == 30
            answers = await asyncio.gather(*futures)
            assert [answer.cluster_id for answer in answers] == [str(n) for n in range(30)]
            assert connection.in_flight == 0
            connection.close()

    run(test)


def test_in_flight_requests_are_bounded() -> None:
    async def test() -> None:
        gate = asyncio.Event()

        async def wait(request: MetadataRequest) -> MetadataResponse:
            await gate.wait()
            return MetadataResponse(brokers=[], topics=[])

        async with ScriptedBroker({MetadataRequest: lambda request: wait(request)}) as broker:
            connection = await connect(broker)
            calls = [asyncio.create_task(connection.request(ask())) for _ in range(100)]
            await asyncio.sleep(0.05)
            assert connection.in_flight == limits.IN_FLIGHT_PER_CONNECTION_MAX
            gate.set()
            assert len(await asyncio.gather(*calls)) == 100
            connection.close()

    run(test)


def test_large_answers_arrive_in_pieces() -> None:
    async def test() -> None:
        names = tuple(f"topic-with-a-long-name-{n}" for n in range(500))
        async with ScriptedBroker() as broker:
            broker.answers[MetadataRequest] = metadata(broker, partitions=20, topics=names)
            connection = await connect(broker)
            answers = await asyncio.gather(*(connection.request(ask()) for _ in range(3)))
            assert [len(answer.topics) for answer in answers] == [500] * 3
            connection.close()

    run(test)


def test_bytes_one_by_one() -> None:
    """Frames may be cut anywhere."""

    async def test() -> None:
        async with ScriptedBroker() as broker:
            broker.answers[MetadataRequest] = metadata(broker)
            connection = await connect(broker)
            received: list[bytes] = []
            whole = connection.data_received

            def drip(data: bytes) -> None:
                received.append(data)
                for position in range(len(data)):
                    whole(data[position : position + 1])

            connection._transport.set_protocol(_Drip(connection, drip))  # type: ignore[union-attr]
            answers = await asyncio.gather(*(connection.request(ask()) for _ in range(3)))
            assert [answer.cluster_id for answer in answers] == ["scripted"] * 3
            assert received
            connection.close()

    run(test)


class _Drip(asyncio.Protocol):
    def __init__(self, inner: Connection, receive: Any) -> None:
        self.data_received = receive  # type: ignore[method-assign]
        self.connection_lost = inner.connection_lost  # type: ignore[method-assign]


def test_nobody_listens() -> None:
    async def test() -> None:
        with pytest.raises(NotConnected, match="connection refused"):
            await Connection.open(Address("127.0.0.1", free_ports(1)[0]))

    run(test)


def test_a_request_that_times_out_takes_the_connection_with_it() -> None:
    async def test() -> None:
        async with ScriptedBroker({MetadataRequest: lambda request: None}) as broker:
            connection = await connect(broker)
            behind = await connection.submit(ask(), timeout_ms=60_000)
            with pytest.raises(RequestTimedOut, match="did not answer Metadata within 20 ms"):
                await connection.request(ask(), timeout_ms=20)
            with pytest.raises(RequestTimedOut):
                await behind
            assert not connection.is_open
            with pytest.raises(NotConnected):
                await connection.request(ask())

    run(test)


def test_the_broker_hangs_up() -> None:
    async def test() -> None:
        async with ScriptedBroker({MetadataRequest: lambda request: CLOSE}) as broker:
            connection = await connect(broker)
            with pytest.raises(ConnectionLost, match="closed the connection") as caught:
                await connection.request(ask())
            assert caught.value.maybe_applied
            assert not connection.is_open

    run(test)


def test_closing_fails_what_waits() -> None:
    async def test() -> None:
        async with ScriptedBroker({MetadataRequest: lambda request: None}) as broker:
            connection = await connect(broker)
            waiting = await connection.submit(ask())
            connection.close()
            with pytest.raises(ConnectionLost):
                await waiting
            connection.close()  # twice is harmless

    run(test)


@pytest.mark.parametrize(
    ("garbage", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is it a Kafka listener"),
        (b"\x7f\xff\xff\xff", "is it a Kafka listener"),
        (b"\xff\xff\xff\xff", "is it a Kafka listener"),
        (b"\x00\x00\x00\x00", "is it a Kafka listener"),
        (b"\x00\x00\x00\x04\x00\x00\x12\x34", "never sent"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x01", "bad bytes"),  # an answer to request 1 without a body
        (b"\x00\x00\x00\x09\x00\x00\x00\x01\x00\xff\xff\xff\xff", "bad bytes"),
        (b"\x00\x08\x00\x00\x00\x00\x00\x01\x00" + b"\xff" * (2**19 - 5), "bad bytes"),  # received in another way
        (b"\x00\x08\x00\x00\x00\x00\x12\x34" + bytes(2**19 - 4), "never sent"),
    ],
)
def test_garbage_is_one_clear_error(garbage: bytes, message: str) -> None:
    async def test() -> None:
        async with ScriptedBroker({MetadataRequest: lambda request: garbage}) as broker:
            connection = await connect(broker, max_response_bytes=1_000_000)
            with pytest.raises(ProtocolError, match=message):
                await connection.request(ask())
            assert not connection.is_open

    run(test)


def test_a_cancelled_caller_leaves_the_connection_usable() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            gate = asyncio.Event()

            async def slow(request: MetadataRequest) -> MetadataResponse:
                await gate.wait()
                return MetadataResponse(brokers=[], topics=[])

            broker.answers[MetadataRequest] = lambda request: slow(request)
            connection = await connect(broker)
            call = asyncio.create_task(connection.request(ask()))
            await asyncio.sleep(0)
            assert connection.in_flight == 1
            call.cancel()
            gate.set()
            assert (await connection.request(ask())).topics == []
            connection.close()

    run(test)
