"""Measure what an idle TLS connection costs a broker in memory, after it has written 32 KiB and read 1 MB.

For Kafka it is the heap that is in use after a full collection: its resident memory says how much heap it has touched,
not how much it needs. For Ottla it is resident memory, which counts also what it has freed and not given back.
"""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import time

from bench import probe
from bench.subject import Subject, resident_mib
from bench.workloads import Figures, Scale
from ottla.model import limits
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.wire.frame import request_frame
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.produce import ProduceRequest

TOPIC = "idle-tls"
FETCH_VERSION = 12
WRITTEN_BYTES, READ_BYTES = 32 * 1024, 1_000_000
CONNECTIONS, WARM_UP = 500, 50


def idle_tls(subject: Subject, scale: Scale, round_: int) -> Figures:
    if round_ < 0:
        probe.create_topics(subject.bootstrap, [TOPIC], 1)
        probe.until_all_led(subject.bootstrap, [TOPIC], 1)
        for _ in range(READ_BYTES // WRITTEN_BYTES + 2):
            with probe.Connection(subject.bootstrap) as connection:
                connection.ask(_produce(), probe.PRODUCE)
    first = _idle(subject, WARM_UP)  # what connections share is there before anything counts
    before_kib = _kib(subject)
    counted = _idle(subject, CONNECTIONS if round_ >= 0 else WARM_UP)
    grown_kib = _kib(subject) - before_kib
    for each in (*first, *counted):
        each.close()
    return {"kib": grown_kib / len(counted)}


def _idle(subject: Subject, count: int) -> list[ssl.SSLSocket]:
    """Return connections that were used, when the broker has given back their buffers."""
    found = [_used(subject) for _ in range(count)]
    time.sleep(limits.BUFFER_KEEP_S + 3)
    return found


def _used(subject: Subject) -> ssl.SSLSocket:
    assert subject.tls is not None
    context = ssl.create_default_context(cafile=str(subject.tls.trusted))
    host, port = subject.tls.bootstrap.split(":")
    sock = context.wrap_socket(socket.create_connection((host, int(port)), timeout=60), server_hostname=host)
    for request, version in ((_produce(), probe.PRODUCE), (_fetch(), FETCH_VERSION)):
        sock.sendall(request_frame(request, version, 1, "bench"))
        with sock.makefile("rb") as stream:
            size_bytes = int.from_bytes(stream.read(4), "big")
            assert len(stream.read(size_bytes)) == size_bytes
    assert size_bytes > READ_BYTES * 0.9, size_bytes
    return sock


def _produce() -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    batch = build_batch([Record(0, 0, None, bytes(WRITTEN_BYTES), ())])
    part = data.PartitionProduceData(index=0, records=batch)
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data(name=TOPIC, partition_data=[part])])


def _fetch() -> FetchRequest:
    part = FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=READ_BYTES)
    topic = FetchRequest.Topic(topic=TOPIC, partitions=[part])
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=READ_BYTES, topics=[topic])


def _kib(subject: Subject) -> float:
    if subject.name != "kafka":
        return 1024 * resident_mib(subject.pids)
    (pid,) = subject.pids
    for command in ("GC.run", "GC.heap_info"):
        done = subprocess.run(["jcmd", str(pid), command], capture_output=True, text=True, check=True, timeout=60)
    found = re.search(r"used (\d+)K", done.stdout)
    assert found is not None, done.stdout
    return int(found[1])
