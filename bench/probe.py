"""A bare client over one socket, to wait for a broker's first acknowledged record, and to create many partitions."""

from __future__ import annotations

import socket
import time
from typing import Any

from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.wire import compile, header
from ottla.wire.api import response_class
from ottla.wire.frame import request_frame
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

METADATA, PRODUCE, CREATE, DELETE, LIST_OFFSETS = 12, 9, 7, 5, 7
RETRY_S = 0.002
RECORDS_PER_REQUEST = 9_000


class Connection:
    """Sends one request after the other. Raises OSError while no broker listens."""

    def __init__(self, bootstrap: str, timeout_s: float = 300) -> None:
        host, port = bootstrap.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._stream = self._socket.makefile("rb")

    def ask(self, message: Any, version: int) -> Any:
        self._socket.sendall(request_frame(message, version, 1, "bench"))
        size = self._stream.read(4)
        if len(size) < 4:
            raise ConnectionError("closed")
        body = self._stream.read(int.from_bytes(size, "big"))
        key = type(message).key
        start = 5 if header.response_header_version(key, version) >= 1 else 4
        response, _ = compile.decoder(response_class(key), version)(memoryview(body), start)
        return response

    def repeat(self, message: Any, version: int, count: int, at_once: int) -> None:
        """Send the same request many times, `at_once` of them on the way at a time, and drop the answers."""
        frames = request_frame(message, version, 1, "bench") * at_once
        for _ in range(count // at_once):
            self._socket.sendall(frames)
            for _ in range(at_once):
                self._stream.read(int.from_bytes(self._stream.read(4), "big"))

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()


def ask(bootstrap: str, message: Any, version: int, timeout_s: float = 300) -> Any:
    """Send one request on a connection of its own. Raises OSError while no broker listens."""
    with Connection(bootstrap, timeout_s) as connection:
        return connection.ask(message, version)


def until_acknowledged(bootstrap: str, topic: str, timeout_s: float = 180) -> None:
    """Try until one record is acknowledged with acks=all; the topic is created by a metadata request."""
    batch = build_batch([Record(0, 0, None, b"first", ())])
    produce = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=batch)],
            )
        ],
    )
    metadata = MetadataRequest(topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=True)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            ask(bootstrap, metadata, METADATA)
            answer = ask(bootstrap, produce, PRODUCE)
            if answer.responses[0].partition_responses[0].error_code == 0:
                return
        except OSError:
            pass
        time.sleep(RETRY_S)
    raise TimeoutError(f"no record was acknowledged within {timeout_s} s")


def create_topics(bootstrap: str, names: list[str], partitions: int) -> None:
    """Create topics, with as many in one request as Kafka accepts: it refuses batches of more than 10,000 metadata
    records.
    """
    at_once = max(1, RECORDS_PER_REQUEST // (partitions + 1))
    for start in range(0, len(names), at_once):
        _create(bootstrap, names[start : start + at_once], partitions)


def delete_topics(bootstrap: str, names: list[str]) -> None:
    answer = ask(bootstrap, DeleteTopicsRequest(topic_names=names, timeout_ms=240_000), DELETE)
    failed = [(topic.name, topic.error_code) for topic in answer.responses if topic.error_code]
    assert not failed, failed[:3]


def ensure_topic(bootstrap: str, name: str, partitions: int) -> None:
    """Create the topic unless it exists."""
    request = MetadataRequest(topics=[MetadataRequest.Topic(name=name)], allow_auto_topic_creation=False)
    if ask(bootstrap, request, METADATA).topics[0].error_code:
        _create(bootstrap, [name], partitions)
        until_all_led(bootstrap, [name], partitions)


def _create(bootstrap: str, names: list[str], partitions: int) -> None:
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
            )
            for name in names
        ],
        timeout_ms=240_000,
    )
    answer = ask(bootstrap, request, CREATE)
    failed = [(topic.name, topic.error_code, topic.error_message) for topic in answer.topics if topic.error_code]
    assert not failed, failed[:3]


def ask_all_ends(bootstrap: str, names: list[str], partitions: int) -> None:
    """Request the end offset of every partition, so that the broker opens each."""
    for name in names:
        topic = ListOffsetsRequest.Topic(
            name=name,
            partitions=[
                ListOffsetsRequest.Topic.Partition(partition_index=index, timestamp=-1) for index in range(partitions)
            ],
        )
        request = ListOffsetsRequest(replica_id=-1, topics=[topic])
        deadline = time.monotonic() + 120
        # Kafka's metadata shows a leader some time before that broker knows that it leads.
        while any(found.error_code for found in ask(bootstrap, request, LIST_OFFSETS).topics[0].partitions):
            assert time.monotonic() < deadline, f"{name} is not served"
            time.sleep(0.1)


def until_all_led(bootstrap: str, names: list[str], partitions: int, timeout_s: float = 300) -> None:
    """Wait until Metadata shows a leader for every partition and the last partition accepts a record."""
    request = MetadataRequest(
        topics=[MetadataRequest.Topic(name=name) for name in names], allow_auto_topic_creation=False
    )
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            answer = ask(bootstrap, request, METADATA)
            led = sum(
                partition.error_code == 0 and partition.leader_id >= 0
                for topic in answer.topics
                if topic.error_code == 0
                for partition in topic.partitions
            )
            if led == len(names) * partitions:
                until_acknowledged(bootstrap, names[-1])
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise TimeoutError("not every partition got a leader")
