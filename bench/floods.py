"""Measure how a client is affected by a single other one that floods the broker: with bytes, tiny requests,
connections, metadata requests or joins of a group; each for itself, from one process, with the default settings. The
bytes are sent to another process, too, which writes them to a file: the broker has no part in what that costs a client.

The measured client writes one record at a time and waits for each. The goal is a p99 of at most twice the quiet one.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from bench import probe
from bench.neighbour import QUIET, write
from bench.subject import Subject
from bench.workloads import Figures, Scale
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.wire.frame import request_frame
from ottla.wire.message import Request, Response
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

TOPIC, PARTITIONS = "flooded", 100
FLOOD_S_MAX = 15  # so that a flood of bytes does not fill the disk
CONNECTIONS = 8  # of the client that floods
LOWEST = 19  # priority, as `nice` counts it
ELSEWHERE = "elsewhere"  # the flood of bytes that is sent to another process
SINK_BYTES = 1 << 20  # read, and written, at once
SINK_FILE_BYTES = 4 << 30
JOIN_VERSION = 3  # before members were given an id first


def floods(subject: Subject, scale: Scale, round_: int) -> Figures:
    if round_ < 0:
        probe.until_acknowledged(subject.bootstrap, QUIET)
    for_s = min(scale.latency_s, FLOOD_S_MAX)
    probe.create_topics(subject.bootstrap, [TOPIC], PARTITIONS)
    figures = {"quiet_p99_ms": _p99(write(subject.bootstrap, for_s))}
    for name in FLOODS:
        with flooding(subject.bootstrap, name):
            figures[f"{name}_p99_ms"] = _p99(write(subject.bootstrap, for_s))
    with sink() as address, flooding(address, "bytes"):
        figures[f"{ELSEWHERE}_p99_ms"] = _p99(write(subject.bootstrap, for_s))
    probe.delete_topics(subject.bootstrap, [TOPIC])
    return figures


def _p99(waits_ms: list[float]) -> float:
    return sorted(waits_ms)[int(len(waits_ms) * 0.99)]


@contextmanager
def flooding(bootstrap: str, name: str, nice: int = LOWEST) -> Iterator[None]:
    """Flood the broker from another process. It has a low priority, because it stands for a client on a machine of its
    own, which takes no CPU time from the broker and from the client that is measured.
    """
    process = multiprocessing.get_context("spawn").Process(target=_flood, args=(bootstrap, name, nice), daemon=True)
    process.start()
    try:
        time.sleep(1.5)  # wait until it is under way
        yield
    finally:
        process.terminate()
        process.join()


@contextmanager
def sink() -> Iterator[str]:
    """A process with the priority of a broker, which writes all bytes that it is sent to a file; yields its address."""
    spawned = multiprocessing.get_context("spawn")
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = spawned.Process(target=_sink, args=(server,), daemon=True)
        process.start()
        try:
            yield "{}:{}".format(*server.getsockname())
        finally:
            process.terminate()
            process.join()


def _sink(server: socket.socket) -> None:
    ready, space, position = select.epoll(), memoryview(bytearray(SINK_BYTES)), 0
    accepted: dict[int, socket.socket] = {}
    ready.register(server.fileno(), select.EPOLLIN)
    with suppress(KeyboardInterrupt), tempfile.TemporaryFile() as file:
        while True:
            for number, _ in ready.poll():
                if number == server.fileno():
                    sock, _ = server.accept()
                    accepted[sock.fileno()] = sock
                    ready.register(sock.fileno(), select.EPOLLIN)
                else:
                    size = 0
                    with suppress(OSError):
                        size = accepted[number].recv_into(space)
                    if not size:  # the client has left
                        accepted.pop(number).close()
                    position = (position + os.pwrite(file.fileno(), space[:size], position)) % SINK_FILE_BYTES


def _flood(bootstrap: str, name: str, nice: int) -> None:
    os.nice(nice)
    with suppress(KeyboardInterrupt):
        FLOODS[name](bootstrap)


def _bytes(bootstrap: str) -> None:
    _send_without_end(bootstrap, [_produce(b"x" * 900_000)], probe.PRODUCE)


def _tiny(bootstrap: str) -> None:
    _send_without_end(bootstrap, [_produce(b"x")] * 200, probe.PRODUCE)


def _metadata(bootstrap: str) -> None:
    _send_without_end(bootstrap, [MetadataRequest(topics=None)] * 50, probe.METADATA)


def _joins(bootstrap: str) -> None:
    """Members that come to one group without end, each with a new id, which the group has to forget again."""
    protocol = JoinGroupRequest.Protocol(name="range", metadata=b"x" * 50)
    join = JoinGroupRequest(
        group_id="flooded",
        session_timeout_ms=6_000,
        rebalance_timeout_ms=6_000,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )
    _send_without_end(bootstrap, [join] * 50, JOIN_VERSION)


def _connects(bootstrap: str) -> None:
    host, port = bootstrap.split(":")
    while True:
        opened = []
        for _ in range(50):
            with suppress(OSError):
                opened.append(socket.create_connection((host, int(port)), timeout=10))
        for sock in opened:
            sock.close()


FLOODS: dict[str, Callable[[str], None]] = {
    "bytes": _bytes,
    "tiny": _tiny,
    "metadata": _metadata,
    "joins": _joins,
    "connects": _connects,
}


def _produce(value: bytes) -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=0, records=build_batch([Record(0, 0, None, value, ())]))
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data(name=TOPIC, partition_data=[part])])


def _send_without_end(bootstrap: str, requests: list[Request[Response]], version: int) -> None:
    """Send these requests over several connections, as fast as the broker takes them; drop the answers."""
    frames = b"".join(request_frame(each, version, number, "flood") for number, each in enumerate(requests))
    host, port = bootstrap.split(":")
    unsent: dict[socket.socket, memoryview] = {}
    for _ in range(CONNECTIONS):
        sock = socket.create_connection((host, int(port)))
        sock.setblocking(False)
        unsent[sock] = memoryview(frames)
    while True:
        is_idle = True
        for sock, left in unsent.items():
            with suppress(BlockingIOError):
                unsent[sock] = left[sock.send(left) :] or memoryview(frames)
                is_idle = False
            with suppress(BlockingIOError):
                is_idle = not sock.recv(1 << 20) and is_idle
        if is_idle:
            time.sleep(0.001)
