"""One partition over several replicas in memory: a controller as simple as can be, nodes that hear of its decisions
late, fetches whose answers are under way. Every step checks what must never be untrue."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from tests.log.logs import DIRECTORY, NOW_MS, batch, read_batches

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.record import records
from ottla.replica.partition import ACKS_ALL, Partition
from ottla.replica.terms import NO_LEADER, Proposal, Terms
from ottla.sim.world.disk import Crash, SimDisk

LAG_MS = 1_000
RETRY = ErrorCode.REQUEST_TIMED_OUT


class Decision(NamedTuple):
    """One version of the metadata."""

    terms: Terms
    epochs: dict[int, int]  # of brokers that are registered and not fenced


class View:
    """What one node knows of the cluster."""

    lag_ms_max = LAG_MS

    def __init__(self, decision: Decision, steady_ms: Callable[[], int] = lambda: NOW_MS) -> None:
        self.decision = decision
        self.steady_ms = steady_ms
        self.considered = 0
        self.syncs = 0
        self.moves = 0
        self.growths: list[bool] = []

    def broker_epoch(self, broker_id: int) -> int | None:
        return self.decision.epochs.get(broker_id)

    def may_join(self, broker_id: int) -> bool:
        return broker_id in self.decision.epochs

    def moved(self, partition: Partition) -> None:
        self.moves += 1

    def grew(self, partition: Partition, *, hurry: bool) -> None:
        self.growths.append(hurry)

    def must_write(self, partition: Partition) -> None: ...

    def must_sync(self, partition: Partition) -> None:
        self.syncs += 1

    def isr_may_change(self, partition: Partition) -> None:
        self.considered += 1


class Node:
    def __init__(self, node_id: int, config: LogConfig, rng: random.Random, first: Decision) -> None:
        self.id = node_id
        self.config = config
        self.disk = SimDisk(rng)
        self.broker_epoch = 0
        self.view = View(first)
        self.partition: Partition | None = None
        self.watched: tuple[int, int] = (-1, -1)  # (leader epoch, high watermark) when last looked at as a leader
        self._version: object = None
        self._contents: list[bytes] = []

    def start(self, now_ms: int) -> None:
        log = Log.open(self.disk, DIRECTORY, self.config, now_ms=now_ms)
        self.partition = Partition("topic", 0, log, node_id=self.id, high_watermark=0, neighbours=self.view)

    def contents(self) -> list[bytes]:
        """As they were when last looked at, if nothing happened since."""
        partition = self.partition
        assert partition is not None
        version = partition, partition.cuts, partition.log.next_offset
        if version != self._version:
            self._version, self._contents = version, contents(partition)
        return self._contents

    def sync(self) -> None:
        partition = self.partition
        if partition is not None and partition.needs_sync:
            for file in partition.log.files_to_sync():
                file.sync()
            partition.synced()


class Answer(NamedTuple):
    """A fetch answer under way."""

    partition: Partition
    leader_epoch: int
    offset: int
    records: bytes
    high_watermark: int
    log_start: int
    diverging: tuple[int, int] | None


class Sent(NamedTuple):
    """A record whose producer waits, or was told that it is safe."""

    partition: Partition
    cuts: int
    offset: int
    value: bytes


class Cluster:
    def __init__(self, size: int = 3, *, config: LogConfig | None = None, seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.now_ms = NOW_MS
        ids = tuple(range(1, size + 1))
        self.terms = Terms(1, 0, 0, ids, ids)
        self.registered = dict.fromkeys(ids, 0)
        self.fenced: set[int] = set()
        self.nodes = {node_id: Node(node_id, config or LogConfig(), self.rng, self.decision) for node_id in ids}
        self.answers: list[Answer] = []
        self.proposals: list[tuple[Partition, Proposal]] = []
        self.verdicts: list[tuple[Partition, Terms | ErrorCode]] = []
        self.waiting: list[Sent] = []
        self.acknowledged: list[Sent] = []
        self.count = 0
        for node in self.nodes.values():
            node.view.steady_ms = lambda: self.now_ms
            node.start(self.now_ms)
            self.tell(node.id)

    # --- the controller

    @property
    def decision(self) -> Decision:
        return Decision(self.terms, {each: epoch for each, epoch in self.registered.items() if each not in self.fenced})

    def decide(self, leader: int, isr: tuple[int, ...]) -> None:
        before = self.terms
        epoch = before.leader_epoch + (leader != before.leader)
        self.terms = before._replace(
            leader=leader, leader_epoch=epoch, partition_epoch=before.partition_epoch + 1, isr=isr
        )

    def fence(self, node_id: int) -> None:
        self.fenced.add(node_id)
        isr = tuple(each for each in self.terms.isr if each != node_id) or self.terms.isr
        self._elect(isr)

    def unfence(self, node_id: int) -> None:
        self.fenced.discard(node_id)
        self._elect(self.terms.isr)

    def elect(self, leader: int) -> None:
        if leader in self.terms.isr and leader not in self.fenced:
            self.decide(leader, self.terms.isr)

    def _elect(self, isr: tuple[int, ...]) -> None:
        leader = self.terms.leader
        if leader not in isr or leader in self.fenced:
            leader = next((each for each in isr if each not in self.fenced), NO_LEADER)
        if (leader, isr) != (self.terms.leader, self.terms.isr):
            self.decide(leader, isr)

    def judge(self) -> None:
        """The controller gets the oldest proposal."""
        if self.proposals:
            partition, proposal = self.proposals.pop(0)
            self.verdicts.append((partition, self._verdict(partition, proposal)))

    def _verdict(self, partition: Partition, proposal: Proposal) -> Terms | ErrorCode:
        terms = self.terms
        if (proposal.leader_epoch, partition.node_id) != (terms.leader_epoch, terms.leader):
            return ErrorCode.FENCED_LEADER_EPOCH
        if proposal.partition_epoch != terms.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for broker_id, epoch in proposal.isr:
            if broker_id in self.fenced or epoch not in (-1, self.registered[broker_id]):
                return ErrorCode.INELIGIBLE_REPLICA
        self.decide(terms.leader, proposal.members)
        return self.terms

    # --- what nodes hear and say

    def tell(self, node_id: int) -> None:
        """The node catches up with the metadata."""
        node = self.nodes[node_id]
        node.view.decision = self.decision
        if node.partition is not None:
            if self.terms.leader == node_id:
                node.partition.lead(self.terms, self.now_ms)
            else:
                node.partition.follow(self.terms)

    def propose(self, node_id: int) -> None:
        partition = self.nodes[node_id].partition
        proposal = partition.isr_proposal(self.now_ms) if partition is not None else None
        if partition is not None and proposal is not None:
            self.proposals.append((partition, proposal))

    def hear(self, *, lose: bool = False) -> None:
        """The oldest verdict arrives, or is lost and the proposal sent again."""
        if not self.verdicts:
            return
        partition, verdict = self.verdicts.pop(0)
        if lose:
            verdict = RETRY
        if isinstance(verdict, Terms):
            partition.proposal_accepted(verdict, self.now_ms)
        elif partition.proposal_refused(verdict, self.now_ms):
            pending = partition.in_sync.pending if partition.in_sync is not None else None
            if pending is not None:
                self.proposals.append((partition, pending))

    def produce(self, node_id: int) -> ErrorCode:
        """To whom the producer takes for the leader."""
        partition = self.nodes[node_id].partition
        if partition is None:
            return ErrorCode.NETWORK_EXCEPTION
        self.count += 1
        value = b"%06d" % self.count
        try:
            appended = partition.append(_batch(value), now_ms=self.now_ms, acks=ACKS_ALL)
        except ApiError as error:
            return error.code
        self.waiting.append(Sent(partition, partition.cuts, appended.last_offset, value))
        return ErrorCode.NONE

    def ask(self, node_id: int, *, max_bytes: int = 1 << 20) -> ErrorCode:
        """The node fetches from whom it takes for the leader; the answer is under way."""
        node = self.nodes[node_id]
        partition = node.partition
        if partition is None or partition.leader_id in (NO_LEADER, node_id) or partition.fetch_offset is None:
            return ErrorCode.NONE
        leader = self.nodes[partition.leader_id].partition
        if leader is None:
            return ErrorCode.NETWORK_EXCEPTION
        offset = partition.fetch_offset
        try:
            fetched = leader.fetch_as_follower(
                node_id,
                node.broker_epoch,
                offset,
                max_bytes,
                self.now_ms,
                log_start=partition.log.log_start_offset,
                current_leader_epoch=partition.leader_epoch,
                last_fetched_epoch=partition.log.epochs.latest,
            )
        except ApiError as error:
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                if offset > leader.log.next_offset:
                    partition.truncate_to(leader.log.next_offset)
                else:
                    partition.begin_at(leader.log.log_start_offset)
            return error.code
        found = fetched.records.read() if fetched.records is not None else b""
        watermarks = fetched.high_watermark, fetched.log_start_offset
        self.answers.append(Answer(partition, partition.leader_epoch, offset, found, *watermarks, fetched.diverging))
        return ErrorCode.NONE

    def answer(self, at: int = 0) -> None:
        """An answer arrives; one that is about something else by now is ignored."""
        if not self.answers:
            return
        answer = self.answers.pop(at % len(self.answers))
        partition = answer.partition
        node = self.nodes[partition.node_id]
        if node.partition is not partition or partition.is_leader or partition.leader_epoch != answer.leader_epoch:
            return
        if partition.log.next_offset != answer.offset:
            return
        if answer.diverging is not None:
            partition.truncate_for(*answer.diverging)
        else:
            partition.append_fetched(answer.records, answer.high_watermark, answer.log_start, self.now_ms)

    def replicate(self, *node_ids: int, rounds: int = 2) -> None:
        """Fetches and their answers, at once."""
        for _ in range(rounds):
            for node_id in node_ids or tuple(self.nodes):
                self.ask(node_id)
                while self.answers:
                    self.answer()

    def crash(self, node_id: int, kind: Crash = Crash.PROCESS) -> None:
        node = self.nodes[node_id]
        if node.partition is not None:
            node.partition = None
            node.disk = node.disk.crash(kind)

    def restart(self, node_id: int) -> None:
        """It registers anew, which fences it until it is told to be in order."""
        node = self.nodes[node_id]
        if node.partition is None:
            self.fence(node_id)
            node.broker_epoch += 1
            self.registered[node_id] = node.broker_epoch
            node.view = View(self.decision, node.view.steady_ms)
            node.start(self.now_ms)
            self.tell(node_id)

    def heal(self) -> None:
        """Everything works again, for long enough."""
        for node_id in self.nodes:
            self.restart(node_id)
        for node_id in self.nodes:
            self.unfence(node_id)
        for _ in range(8):
            self.now_ms += 1
            for step in (self.tell, lambda each: self.nodes[each].sync(), self.replicate, self.propose):
                for node_id in self.nodes:
                    step(node_id)
            while self.proposals or self.verdicts:
                self.judge()
                self.hear()
        self.settle()

    # --- what must hold

    def settle(self) -> None:
        """Producers hear what became of their records."""
        still = []
        for sent in self.waiting:
            node = self.nodes[sent.partition.node_id]
            gone = node.partition is not sent.partition or sent.partition.cuts != sent.cuts
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if gone else sent.partition.enough_after(sent.offset + 1)
            if code is None:
                still.append(sent)
            elif code == ErrorCode.NONE:
                self.acknowledged.append(sent)
        self.waiting = still

    def check(self) -> None:
        self.settle()
        logs = {node.id: node.contents() for node in self.live()}
        for node in self.live():
            partition = node.partition
            assert partition is not None
            assert partition.log.log_start_offset <= partition.high_watermark <= partition.log.next_offset
            if partition.is_leader:
                epoch, high_watermark = node.watched
                assert epoch != partition.leader_epoch or partition.high_watermark >= high_watermark
                node.watched = partition.leader_epoch, partition.high_watermark
            for other in self.live():
                assert other.partition is not None
                common = min(partition.high_watermark, other.partition.high_watermark)
                assert logs[node.id][:common] == logs[other.id][:common], (node.id, other.id, common)
        leader = self.nodes[self.terms.leader].partition if self.terms.leader != NO_LEADER else None
        if leader is not None and leader.leader_epoch == self.terms.leader_epoch:
            held = logs[self.terms.leader]
            for sent in self.acknowledged:
                assert held[sent.offset : sent.offset + 1] == [sent.value], (sent.offset, sent.value)

    def live(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.partition is not None]


def contents(partition: Partition | None) -> list[bytes]:
    """The values of all records; the log begins at 0."""
    assert partition is not None
    found = [record for _, data in read_batches(partition.log) for record in records(data)]
    return [bytes(record.value or b"") for record in found]


def _batch(value: bytes) -> bytearray:
    from ottla.records.build import build_batch
    from ottla.records.record import Record

    return build_batch([Record(-1, NOW_MS, None, value)])


def code_of(call: Callable[[], object]) -> ErrorCode:
    try:
        call()
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


__all__ = ["Cluster", "Crash", "batch", "code_of", "contents"]
