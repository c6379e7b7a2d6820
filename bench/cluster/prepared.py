"""A producer that uses hardly any CPU: request frames are made beforehand and pipelined to every leader, with acks=all.

Kafka's own producer needs several times the CPU of three Ottla nodes for the same records, so on a small machine the
wall time would measure the producer. Here the bytes are ready before the measurement starts: what is left is one copy
into the socket per request, and reading the responses. As many requests are in flight to each broker as Kafka's
producer allows, each with one batch of every partition that the broker leads.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Mapping, Sequence

from tests.support.processes.clusters import METADATA_VERSION, ProcessCluster

from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.wire import compile, header
from ottla.wire.frame import request_frame
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse
from ottla.wire.messages.topics.metadata import MetadataRequest

PRODUCE_VERSION = 9
CORRELATION_ID = 1
IN_FLIGHT = 5  # max.in.flight.requests.per.connection
SILENCE_S = 60.0
_ANSWER_AT = 5 if header.response_header_version(ProduceRequest.key, PRODUCE_VERSION) >= 1 else 4
_TopicData = ProduceRequest.TopicProduceData


class Load:
    """Frames for every leader of a topic, and how often to send each."""

    def __init__(self, cluster: ProcessCluster, topic: str, records: int, size_bytes: int, batch_bytes: int) -> None:
        leaders = _leaders(cluster, topic)
        per_batch = batch_bytes // (size_bytes + 10)  # the overhead of a record is some ten bytes
        batch = build_batch([Record(at, 0, None, bytes(size_bytes), ()) for at in range(per_batch)])
        partitions = sum(map(len, leaders.values()))
        self._times = -(-records // (per_batch * partitions))
        self._frames = {id: _frame(topic, indexes, batch) for id, indexes in leaders.items()}
        self._addresses = {id: cluster.address(id) for id in leaders}
        self.records = self._times * per_batch * partitions

    def run(self) -> int:
        with selectors.DefaultSelector() as selector:
            lines = [_Line(self._addresses[id], frame, self._times) for id, frame in self._frames.items()]
            try:
                _drive(selector, lines)
            finally:
                for line in lines:
                    line.sock.close()
        return self.records


class _Line:
    """One connection, which sends the same frame repeatedly, with `IN_FLIGHT` requests in flight."""

    def __init__(self, address: str, frame: bytes, times: int) -> None:
        host, port = address.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)), timeout=SILENCE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self._frame = memoryview(frame)
        self._rest = self._frame[:0]  # the rest of a frame that is partly sent
        self._received = bytearray()
        self._unsent = self.unanswered = times

    @property
    def may_send(self) -> bool:
        return len(self._rest) > 0 or (self._unsent > 0 and self.unanswered - self._unsent < IN_FLIGHT)

    def send(self) -> bool:
        """Send as much as the limit and the socket allow; whether the socket was what stopped it."""
        while self.may_send:
            if not self._rest:
                self._rest = self._frame
                self._unsent -= 1
            try:
                self._rest = self._rest[self.sock.send(self._rest) :]
            except BlockingIOError:
                return True
        return False

    def receive(self) -> None:
        data = self.sock.recv(65_536)
        if not data:
            raise ConnectionError("the broker closed the connection")
        received = self._received
        received += data
        while len(received) >= 4 and len(received) >= 4 + (size := int.from_bytes(received[:4], "big")):
            _check(memoryview(bytes(received[4 : 4 + size])))
            del received[: 4 + size]
            self.unanswered -= 1


def _drive(selector: selectors.BaseSelector, lines: Sequence[_Line]) -> None:
    for line in lines:
        selector.register(line.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, line)
    while any(line.unanswered for line in lines):
        ready = selector.select(SILENCE_S)
        if not ready:
            raise TimeoutError("no broker answers")
        for key, events in ready:
            line: _Line = key.data
            if events & selectors.EVENT_READ:
                line.receive()
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if line.send() else 0)
            if wanted != key.events:
                selector.modify(line.sock, wanted, line)


def _check(answer: memoryview) -> None:
    response, _ = compile.decoder(ProduceResponse, PRODUCE_VERSION)(answer, _ANSWER_AT)
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise AssertionError(f"{topic.name}-{partition.index}: error {partition.error_code}")


def _frame(topic: str, partitions: Sequence[int], batch: bytes) -> bytes:
    data = [_TopicData.PartitionProduceData(index=index, records=batch) for index in partitions]
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[_TopicData(name=topic, partition_data=data)])
    return request_frame(request, PRODUCE_VERSION, CORRELATION_ID, "bench")


def _leaders(cluster: ProcessCluster, topic: str) -> Mapping[int, Sequence[int]]:
    request = MetadataRequest(topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=False)
    (found,) = cluster.ask(request, METADATA_VERSION).topics
    led: dict[int, list[int]] = {}
    for partition in found.partitions:
        led.setdefault(partition.leader_id, []).append(partition.partition_index)
    return led
