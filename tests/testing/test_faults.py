"""The fault script: requests fail as a test says, in a shape that any client understands."""

import asyncio
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api import dispatch
from ottla.server.loop.later import Disconnect, Large, Sliced
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.faults import FaultScript
from ottla.testing.refusal import ERROR, refusal
from ottla.wire import api, compile
from ottla.wire.message import Struct, fields
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorResponse


def test_a_producer_retries_what_passes(ottla_broker: EmbeddedBroker) -> None:
    fault = ottla_broker.fail(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=3)
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "retry.backoff.ms": 10})
    producer.produce("orders", b"x", partition=0)
    assert producer.flush(WAIT_S) == 0
    assert fault.hits == 3
    with Blocking(ottla_broker.bootstrap) as client:
        assert [record.value for record in client.read("orders")] == [b"x"]


def test_a_fatal_error_reaches_the_caller(ottla_broker: EmbeddedBroker) -> None:
    ottla_broker.fail(api="produce", error=ErrorCode.MESSAGE_TOO_LARGE)
    with Blocking(ottla_broker.bootstrap) as client:
        with pytest.raises(ApiError, match="MESSAGE_TOO_LARGE"):
            client.send("orders", b"x", partition=0)
        client.send("orders", b"y", partition=0)
        assert [record.value for record in client.read("orders")] == [b"y"]


def test_an_idempotent_producer_survives_an_answer_that_got_lost(ottla_broker: EmbeddedBroker) -> None:
    fault = ottla_broker.fail(api="Produce", close=True, after=True, times=2)
    producer = Producer(
        {"bootstrap.servers": ottla_broker.bootstrap, "enable.idempotence": True, "retry.backoff.ms": 10}
    )
    for number in range(20):
        producer.produce("orders", b"%d" % number, partition=0)
    assert producer.flush(WAIT_S) == 0
    assert fault.hits == 2
    with Blocking(ottla_broker.bootstrap) as client:
        assert [record.value for record in client.read("orders")] == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("close", [False, True])
def test_an_answer_that_is_awaited_fails_like_any_other(close: bool) -> None:
    """Some handlers return a Later, some an answer, some what is awaited, in slices or not."""
    carried_out: list[str] = []

    def answer() -> Any:
        return FindCoordinatorResponse(error_code=0, coordinators=[])

    async def awaited() -> Any:
        await asyncio.sleep(0)
        carried_out.append("awaited")
        return Large(answer())

    async def call() -> list[int]:
        script, context = FaultScript(), cast(Any, SimpleNamespace(client_id="", request_version=4))
        codes = []
        for made in (answer, awaited, lambda: Sliced(awaited(), changes=True)):
            endpoint = cast(
                Any, SimpleNamespace(name="FindCoordinator", handler=lambda request, context, made=made: made())
            )
            error = None if close else "COORDINATOR_NOT_AVAILABLE"
            script.add("FindCoordinator", error, 1, close=close, delay=None, after=True, client_id=None)
            try:
                got = script.intercept(endpoint, None, context)
                codes.append((await got if isinstance(got, Awaitable) else got).error_code)
            except Disconnect:
                codes.append(0)
        await asyncio.sleep(0.01)
        return codes

    expected = 0 if close else ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert asyncio.run(call()) == [expected] * 3
    assert carried_out == ["awaited"] * 2


def test_only_one_client(ottla_broker: EmbeddedBroker) -> None:
    fault = ottla_broker.fail(api="OffsetCommit", error="GROUP_AUTHORIZATION_FAILED", times=None, client_id="bad")
    with Blocking(ottla_broker.bootstrap) as client:
        client.send("orders", b"x", partition=0)
    for name in ("good", "bad"):
        consumer = Consumer({"bootstrap.servers": ottla_broker.bootstrap, "group.id": name, "client.id": name})
        consumer.committed([TopicPartition("orders", 0)], timeout=WAIT_S)
        where = [TopicPartition("orders", 0, 1)]
        if name == "good":
            consumer.commit(offsets=where, asynchronous=False)
        else:
            with pytest.raises(KafkaException):
                consumer.commit(offsets=where, asynchronous=False)
            ottla_broker.heal()
            consumer.commit(offsets=where, asynchronous=False)
        consumer.close()
    assert fault.hits >= 1


def test_a_paused_broker_answers_later(ottla_broker: EmbeddedBroker) -> None:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    producer.produce("orders", b"before", partition=0)
    assert producer.flush(WAIT_S) == 0
    with ottla_broker.paused():
        producer.produce("orders", b"while", partition=0)
        assert producer.flush(0.3) == 1
    assert producer.flush(WAIT_S) == 0


def test_a_delayed_answer(ottla_broker: EmbeddedBroker) -> None:
    fault = ottla_broker.fail(api="Metadata", delay="1h")
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    producer.produce("orders", b"x", partition=0)
    until(lambda: producer.poll(0) == 0 and fault.hits == 1)
    assert producer.flush(0.2) == 1
    ottla_broker.clock.advance("1h")
    assert producer.flush(WAIT_S) == 0


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"api": "Nonsense", "error": "NONE"}, "no API"),
        ({"api": "Fetch", "error": "NONSENSE"}, "no error"),
        ({"api": "Fetch"}, "how it fails"),
        ({"api": "Fetch", "delay": "soon"}, "not a duration"),
    ],
)
def test_a_line_that_makes_no_sense(ottla_broker: EmbeddedBroker, wrong: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ottla_broker.fail(**wrong)


def test_every_api_that_changes_something_can_be_refused() -> None:
    """A request with one of everything gets an answer that can be written in every version, with the error in it."""
    dispatch.load_handlers()
    silent = []
    for endpoint in dispatch.ENDPOINTS.values():
        if endpoint.name == "ApiVersions":
            continue
        request = _one_of_everything(endpoint.request)
        response = refusal(_unhandled(endpoint), request, None, ErrorCode.UNKNOWN_SERVER_ERROR)  # type: ignore[arg-type]
        low, high = api.response_class(endpoint.key).versions
        for version in range(max(low, endpoint.low), min(high, endpoint.high) + 1):
            assert compile.encode(response, version)
        if not _errors(response):
            silent.append(endpoint.name)
    assert silent == []


def _unhandled(endpoint: dispatch.Served) -> dispatch.Served:
    """Its handler is not to be asked, whatever it does."""
    return dispatch.Served(
        endpoint.key, endpoint.name, endpoint.low, endpoint.high, lambda request, context: None, endpoint.request
    )


def _one_of_everything(kind: type[Struct]) -> Struct:
    values = {}
    for field in fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            item: object = _one_of_everything(field.type)
        else:
            code = getattr(field.type, "code", None)
            item = {"?": True, "16s": bytes(range(16)), None: "name"}.get(code, 1)
            if code is None and getattr(field.type, "kind", "") != "string":
                item = b"bytes"
        values[field.name] = [item] if field.is_list else item
    return kind(**values)


def _errors(struct: Struct) -> int:
    found = int(getattr(struct, ERROR, 0) != 0)
    for field in fields(type(struct)):
        value = getattr(struct, field.name)
        if isinstance(value, list):
            found += sum(_errors(each) for each in value if isinstance(each, Struct))
    return found
