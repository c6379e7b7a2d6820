"""Requests that are well formed and make no sense, to every coordinator, while a good client goes on undisturbed.

The fields are made of a few names, ids and numbers that other requests use too, so that absurd requests meet groups,
transactions and sessions that exist. Every one must be answered (not with a closed connection), nothing may fail inside
the node, time may pass in between, and what the journals hold in the end must be readable by the next life.
"""

from __future__ import annotations

import logging
import random
import select
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S

from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.server.api import dispatch
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.message import Request, Struct, fields
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.types import Fixed, Sized

REQUESTS_PER_API = 60
ROUNDS = 3
# Those of coordination; the others have tests of their own.
APIS = [
    "AddOffsetsToTxn",
    "AddPartitionsToTxn",
    "AlterShareGroupOffsets",
    "ConsumerGroupDescribe",
    "ConsumerGroupHeartbeat",
    "DeleteGroups",
    "DeleteShareGroupOffsets",
    "DeleteShareGroupState",
    "DescribeGroups",
    "DescribeProducers",
    "DescribeShareGroupOffsets",
    "DescribeTransactions",
    "EndTxn",
    "FindCoordinator",
    "Heartbeat",
    "InitProducerId",
    "InitializeShareGroupState",
    "JoinGroup",
    "LeaveGroup",
    "ListGroups",
    "ListTransactions",
    "OffsetCommit",
    "OffsetDelete",
    "OffsetFetch",
    "Produce",
    "ReadShareGroupState",
    "ReadShareGroupStateSummary",
    "ShareAcknowledge",
    "ShareFetch",
    "ShareGroupDescribe",
    "ShareGroupHeartbeat",
    "StreamsGroupDescribe",
    "StreamsGroupHeartbeat",
    "SyncGroup",
    "TxnOffsetCommit",
    "WriteShareGroupState",
    "WriteTxnMarkers",
]
# Their answers may be long in coming.
PARKED = ("JoinGroup", "SyncGroup", "ShareFetch", "Produce")
TOPIC = "absurd"
LONG = "x" * 32_700
NUMBERS = {1: [-1, 0, 1, 2, 3, 127, -128], 2: [-1, 0, 1, 2, 5, 32_766, 32_767, -32_768]}
WIDE = [-(2**31), -2, -1, 0, 0, 0, 1, 1, 2, 3, 100, 6_000, 45_000, 2**31 - 1]
WIDEST = [*WIDE, 1_000, 2_000, 2**63 - 1, -(2**63)]


class Absurd:
    """Makes requests out of what the answers to earlier ones told."""

    def __init__(self, rng: random.Random, topic_id: bytes) -> None:
        self.rng = rng
        self.topic_ids = [topic_id, topic_id, topic_id, bytes(16), bytes(range(16))]
        self.names = ["g1", "g2", "g3", "t1", "t2", "", TOPIC, TOPIC, "consumer", "range", "__consumer_offsets"]
        self.names += [
            "__transaction_state",
            "__share_group_state",
            "uniform",
            "a:b:0",
            "\u0000",
            "ünï-\U0001f600",
            LONG,
        ]
        self.members: list[str] = ["m1"]

    def request(self, cls: type[Struct], version: int) -> Any:
        values = {}
        for field in fields(cls):
            if version in field.versions:
                values[field.name] = self._value(field, version)
        return cls(**values)

    def _value(self, field: Any, version: int) -> Any:
        rng = self.rng
        if version in field.nullable and rng.random() < 0.25:
            return None
        if not field.is_list:
            return self._one(field, version)
        found = [self._one(field, version) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))]
        return found * 2 if rng.random() < 0.1 else found

    def _one(self, field: Any, version: int) -> Any:
        kind, rng = field.type, self.rng
        if isinstance(kind, type):
            return self.request(kind, version)
        if isinstance(kind, Sized):
            if kind.kind == "string":
                return rng.choice(self.members if "member" in field.name or "instance" in field.name else self.names)
            if kind.kind == "records":
                return self._batch()
            return rng.choice(
                [b"", b"\x00", b"\x00\x01\x00\x00\x00\x01\x00\x06absurd\xff\xff\xff\xff", rng.randbytes(9)]
            )
        assert isinstance(kind, Fixed)
        if kind.code == "16s":
            return rng.choice(self.topic_ids)
        if kind.code == "?":
            return rng.random() < 0.5
        if kind.code == "d":
            return rng.choice([0.0, -1.0, 1e300])
        if kind.code in "bh":
            return rng.choice(NUMBERS[1 if kind.code == "b" else 2])
        if kind.code in "HI":
            return rng.choice([0, 1, 0xFFFF])
        return rng.choice(WIDE if kind.code == "i" else WIDEST)

    def _batch(self) -> bytes:
        rng = self.rng
        transactional = rng.random() < 0.7
        return bytes(
            build_batch(
                [(b"k", b"v")],
                timestamp=rng.choice([0, 1, 2**40]),
                producer_id=rng.choice([0, 1, 2, 1_000]) if transactional else -1,
                producer_epoch=rng.choice([0, 1, 2]) if transactional else -1,
                transactional=transactional,
            )
        )

    def learn(self, answer: Any) -> None:
        """Member ids that were given out are good for more."""
        member = getattr(answer, "member_id", None)
        if member and len(self.members) < 20:
            self.members.append(member)


class GoodMember(threading.Thread):
    """Commits an offset and reads it back until told to stop."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.connection = RawConnection(bootstrap)
        self.stop = threading.Event()
        self.done = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self.done += 1
                self._commit(self.done)
                assert self._fetch() == self.done
        except BaseException as failure:
            self.failure = failure

    def _commit(self, offset: int) -> None:
        partition = OffsetCommitRequest.Topic.Partition(
            partition_index=0, committed_offset=offset, committed_metadata=None
        )
        topic = OffsetCommitRequest.Topic(name="good", partitions=[partition])
        answer: Any = self.connection.call(OffsetCommitRequest(group_id="good", member_id="", topics=[topic]), 9)
        assert answer.topics[0].partitions[0].error_code == 0

    def _fetch(self) -> int:
        topic = OffsetFetchRequest.Group.Topics(name="good", partition_indexes=[0])
        group = OffsetFetchRequest.Group(group_id="good", member_id=None, member_epoch=-1, topics=[topic])
        while True:
            answer: Any = self.connection.call(OffsetFetchRequest(groups=[group]), 9)
            if answer.groups[0].error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                found: int = answer.groups[0].topics[0].partitions[0].committed_offset
                return found


@pytest.fixture
def good(ottla_broker: EmbeddedBroker) -> Iterator[GoodMember]:
    client = GoodMember(ottla_broker.bootstrap)
    yield client
    client.connection.close()


def prepare(broker: EmbeddedBroker) -> bytes:
    """Two topics and the internal ones; the id of the one that is fair game."""
    with RawConnection(broker.bootstrap) as connection:
        topics = [
            CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=3, replication_factor=1, assignments=[], configs=[]
            )
            for name in ("good", TOPIC)
        ]
        created: Any = connection.call(CreateTopicsRequest(topics=topics, timeout_ms=5_000), 7)
        for kind in (0, 1):
            connection.call(FindCoordinatorRequest(key="x", key_type=kind), 3)
        key = "g:AAAAAAAAAAAAAAAAAAAAAQ:0"
        connection.call(FindCoordinatorRequest(coordinator_keys=[key], key_type=2), 6)
        return bytes(created.topics[1].topic_id)


def test_absurd_requests_are_answered_and_hurt_nobody(
    ottla_broker: EmbeddedBroker, good: GoodMember, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    dispatch.load_handlers()
    by_name = {endpoint.name.removesuffix("Request"): endpoint for endpoint in dispatch.ENDPOINTS.values()}
    rng = random.Random(4)
    absurd = Absurd(rng, prepare(ottla_broker))
    good.start()
    for _ in range(ROUNDS):
        for name in APIS:
            ask(ottla_broker.bootstrap, by_name[name], absurd, REQUESTS_PER_API // ROUNDS)
        ottla_broker.clock.advance("50s")
    good.stop.set()
    good.join(30)
    assert good.failure is None, good.failure
    ottla_broker.clock.advance("2h")
    ottla_broker.restart()
    again = GoodMember(ottla_broker.bootstrap)
    assert again._fetch() == good.done
    again.connection.close()
    assert [line for line in (record.getMessage() for record in caplog.records) if is_alarming(line)] == []


def is_alarming(line: str) -> bool:
    return any(word in line for word in ("failed", "cannot be read", "could not be given", "could not be written"))


def ask(bootstrap: str, endpoint: dispatch.Served, absurd: Absurd, times: int) -> None:
    connection = RawConnection(bootstrap, timeout_s=WAIT_S)
    patient = endpoint.name.removesuffix("Request") not in PARKED
    for number in range(times):
        version = absurd.rng.randint(endpoint.low, endpoint.high)
        request: Request = absurd.request(endpoint.request, version)
        if getattr(request, "acks", 1) == 0:
            request.acks = 1  # type: ignore[attr-defined]  # else there is no answer to wait for
        if isinstance(request, ShareFetchRequest):
            request.max_wait_ms = min(request.max_wait_ms, 20)
        connection.send(request_frame(request, version, number, absurd.rng.choice(["", "absurd", LONG])))
        if patient or select.select([connection._socket], [], [], 0.02)[0]:
            try:
                answer = connection.receive()
            except Closed:
                pytest.fail(f"no answer to v{version} {request!r:.2000}")
            absurd.learn(connection.decode(endpoint.key, version, answer, number))
        else:
            connection.close()
            connection = RawConnection(bootstrap, timeout_s=WAIT_S)
    connection.close()
