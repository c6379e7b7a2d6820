"""Hostile bytes against a live node, while a good client goes on undisturbed."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S, until
from tests.wire.strategies import values

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.server.api import dispatch
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.message import Request
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

HOSTILE_FRAMES = 1_500


class GoodClient(threading.Thread):
    """Produces and checks its offsets until told to stop."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.connection = RawConnection(bootstrap)
        self.stop = threading.Event()
        self.sent = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                assert self.produce_one() == self.sent
                self.sent += 1
        except BaseException as failure:
            self.failure = failure

    def produce_one(self) -> int:
        part = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=build_batch([(b"k", b"v" * 100)]))
        topic = ProduceRequest.TopicProduceData(name="good", partition_data=[part])
        answer = self.connection.call(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic]), 9)
        found = answer.responses[0].partition_responses[0]  # type: ignore[attr-defined]
        assert found.error_code == 0, found
        offset: int = found.base_offset
        return offset


@pytest.fixture
def good(ottla_broker: EmbeddedBroker) -> Iterator[GoodClient]:
    connection = RawConnection(ottla_broker.bootstrap)
    topics = [MetadataRequest.Topic(name="good")]
    asking = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
    until(lambda: connection.call(asking, 9).topics[0].error_code == ErrorCode.NONE)  # type: ignore[attr-defined]
    connection.close()
    client = GoodClient(ottla_broker.bootstrap)
    client.start()
    yield client
    client.stop.set()
    client.join(30)
    assert client.failure is None, client.failure
    assert client.sent > 0
    client.connection.close()


def valid_frames(rng: random.Random) -> list[bytes]:
    """One well-formed request per served API and a random version, to be damaged."""
    frames = []
    dispatch.load_handlers()
    for endpoint in dispatch.ENDPOINTS.values():
        version = rng.randint(endpoint.low, endpoint.high)
        frames += [request_frame(message, version, 7, "fuzz") for message in examples(endpoint.request, version)]
    return frames


def examples(cls: type[Request], version: int) -> list[Request]:
    found: list[Request] = []

    @settings(
        max_examples=3,
        database=None,
        phases=[Phase.generate],
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(values(cls, version))
    def collect(message: Request) -> None:
        found.append(message)

    collect()
    return found


def damaged(frame: bytes, rng: random.Random) -> bytes:
    body = bytearray(frame[4:])
    for _ in range(rng.randint(1, 6)):
        how = rng.randrange(4)
        if how == 0 and body:
            body[rng.randrange(len(body))] = rng.randrange(256)
        elif how == 1:
            del body[rng.randrange(len(body) + 1) :]
        elif how == 2:
            at = rng.randrange(len(body) + 1)
            body[at:at] = rng.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", rng.randbytes(9)])
        elif how == 3 and len(body) > 4:
            struct.pack_into(">i", body, rng.randrange(len(body) - 4), rng.choice([-1, -2, 2**31 - 1, -(2**31), 10**6]))
    length = len(body) if rng.random() < 0.9 else rng.choice([-1, 0, 3, len(body) + 5, 2**31 - 1])
    return struct.pack(">i", length) + bytes(body)


def test_fuzzed_frames_hurt_nobody_else(ottla_broker: EmbeddedBroker, good: GoodClient) -> None:
    rng = random.Random(3)
    frames = valid_frames(rng)
    host, port = ottla_broker.bootstrap.split(":")
    for number in range(HOSTILE_FRAMES):
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as sock:
            try:
                sock.sendall(damaged(rng.choice(frames), rng))
                if number % 3 == 0:
                    sock.settimeout(0.02)
                    sock.recv(65_536)
            except (TimeoutError, ConnectionError):
                pass
        if good.failure is not None:
            break
    fresh = RawConnection(ottla_broker.bootstrap)
    fresh.call(ApiVersionsRequest(client_software_name="after", client_software_version="1"), 3)
    fresh.close()


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1, limits.REQUEST_FRAME_BYTES_MAX + 1])
def test_absurd_lengths_close_the_connection_at_once(ottla_broker: EmbeddedBroker, length: int) -> None:
    with RawConnection(ottla_broker.bootstrap, timeout_s=WAIT_S) as connection:
        connection.send(struct.pack(">i", length) + b"x" * 100)
        with pytest.raises(Closed):
            connection.receive()


def test_unknown_api_and_version_close_the_connection(ottla_broker: EmbeddedBroker) -> None:
    for key, version in [(5, 0), (999, 0), (3, 99), (-1, 0), (0, 2)]:
        with RawConnection(ottla_broker.bootstrap, timeout_s=WAIT_S) as connection:
            connection.send(struct.pack(">ihhih", 10, key, version, 1, -1))
            with pytest.raises(Closed):
                connection.receive()


def test_a_stalled_giant_frame_holds_little_memory(ottla_broker: EmbeddedBroker) -> None:
    assert ottla_broker.node is not None
    stalled = [RawConnection(ottla_broker.bootstrap) for _ in range(50)]
    for connection in stalled:
        connection.send(struct.pack(">i", limits.REQUEST_FRAME_BYTES_MAX) + b"x" * 100_000)
    good = RawConnection(ottla_broker.bootstrap)
    good.call(ApiVersionsRequest(client_software_name="good", client_software_version="1"), 3)
    assert ottla_broker.node.connections.memory.used_bytes <= 50 * 3 * 100_000
    for connection in [*stalled, good]:
        connection.close()
