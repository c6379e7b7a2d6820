"""Batches that unpack to very much, on a node of its own: others are served meanwhile, and memory is bounded."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import PRODUCE_VERSION, create, produce, produce_request
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import RawConnection

from ottla.model.errors import ErrorCode
from ottla.model.limits import KIB, MIB
from ottla.records.build import build_batch
from ottla.records.compress import Codec

PARTITIONS = 20
ATTACKERS = 4
# Some milliseconds on a quiet machine; with everything on the loop it was 10 to 24 s on the same.
OTHERS_WAIT_S_MAX = 5
# Unpacked once, what that was copied from, and what the requests themselves take.
GROWTH_BYTES_MAX = 256 * MIB


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    started = OttlaNode(tmp_path_factory.mktemp("node")).start()
    try:
        with RawConnection(started.bootstrap) as connection:
            create(connection, "plain", PARTITIONS)
            create(connection, "compacted", PARTITIONS, cleanup_policy="compact")
            create(connection, "other")
        yield started
    finally:
        started.stop()


def resident_bytes(node: OttlaNode) -> int:
    status = Path(f"/proc/{node.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * KIB


@pytest.mark.parametrize(
    ("codec", "topic"), [(Codec.ZSTD, "plain"), (Codec.ZSTD, "compacted"), (Codec.GZIP, "compacted")]
)
def test_bombs_from_several_connections(node: OttlaNode, codec: Codec, topic: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    bomb = build_batch(
        [(b"k", bytes(100 * MIB)), (b"k", b"")],
        codec=codec,
        timestamp=now_ms + 7_200_000 if topic == "plain" else now_ms,
    )
    refused = ErrorCode.INVALID_TIMESTAMP if topic == "plain" else ErrorCode.MESSAGE_TOO_LARGE
    with RawConnection(node.bootstrap) as connection:
        produce(connection, "other", [b"before"])
        before = resident_bytes(node)
        said: list[set[int]] = []
        attackers = [threading.Thread(target=_attack, args=(node, topic, bomb, said)) for _ in range(ATTACKERS)]
        for attacker in attackers:
            attacker.start()
        waits_s = [0.0]
        while any(attacker.is_alive() for attacker in attackers):
            asked = time.monotonic()
            assert produce(connection, "other", [b"meanwhile"])[0] == 0
            waits_s.append(time.monotonic() - asked)
        assert max(waits_s) <= OTHERS_WAIT_S_MAX, "others were served meanwhile"
        assert len(said) == ATTACKERS and all(refused in codes for codes in said)
        assert all(codes <= {refused, ErrorCode.NOT_ENOUGH_REPLICAS} for codes in said)
        assert resident_bytes(node) - before <= GROWTH_BYTES_MAX


def _attack(node: OttlaNode, topic: str, bomb: bytearray, said: list[set[int]]) -> None:
    with RawConnection(node.bootstrap) as connection:
        request = produce_request({(topic, index): bomb for index in range(PARTITIONS)})
        answer: Any = connection.call(request, PRODUCE_VERSION)
        said.append({each.error_code for told in answer.responses for each in told.partition_responses})
