"""A world of RaftNodes: one clock, a network that loses, delays, repeats and cuts, crashes; invariants at each step."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from tests.raft.memory import MemoryJournal

from ottla.raft import effects, events
from ottla.raft.config import RaftConfig
from ottla.raft.journal import ReplicaKey
from ottla.raft.node import RaftNode
from ottla.raft.voters import QuorumEndpoint, Voter, VoterSet, encode_kraft_version
from ottla.records.control import ControlType
from ottla.wire.message import Request
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.records.fetch import FetchRequest

CLUSTER = "cluster"
CONFIG = RaftConfig(fetch_max_bytes=400, fetch_snapshot_max_bytes=100)


def endpoint(node_id: int) -> QuorumEndpoint:
    return QuorumEndpoint("CONTROLLER", f"node{node_id}", 9000 + node_id)


def voter(node_id: int, *, directory: bytes | None = None) -> Voter:
    return Voter(node_id, directory if directory is not None else disk_of(node_id), (endpoint(node_id),))


def disk_of(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def in_memory(_: Random, controls: Any) -> MemoryJournal:
    return MemoryJournal(controls)


@dataclass
class Faults:
    lost: float = 0.0
    repeated: float = 0.0
    delay_ms_max: int = 5
    cut: set[tuple[int, int]] = field(default_factory=set)  # (from, to)

    def calm(self) -> None:
        """The network is good again, but for what is cut."""
        self.lost = self.repeated = 0.0
        self.delay_ms_max = 5


class World:
    def __init__(
        self,
        seed: int,
        ids: list[int],
        *,
        dynamic: bool = False,
        config: RaftConfig = CONFIG,
        make_journal: Callable[[Random, Any], Any] = in_memory,
        in_doubt: bool = False,
    ) -> None:
        """`in_doubt`: nobody vouches for the empty disks of the first voters; they formatted them themselves."""
        self.rng = Random(seed)
        self._make_journal = make_journal
        self.config = config
        self.now_ms = 1_000
        self.faults = Faults()
        self.nodes: dict[int, RaftNode] = {}
        self.journals: dict[int, Any] = {}
        self.lives: dict[int, int] = {}
        self.queue: list[tuple[int, int, Any]] = []
        self.order = count()
        self.ticks: dict[int, int] = {}
        self.dynamic = dynamic
        self.disks: dict[int, bytes] = {}
        self.amnesiacs: set[int] = set()  # that lost their disks; some of them are over it
        self.static = VoterSet() if dynamic else VoterSet(voter(each, directory=bytes(16)) for each in ids)
        voters = VoterSet(voter(each) for each in ids)
        self.controls = (
            [(ControlType.KRAFT_VERSION, encode_kraft_version(1)), (ControlType.KRAFT_VOTERS, voters.encode())]
            if dynamic
            else []
        )
        self.leaders: dict[int, int] = {}  # epoch → who led it
        self.committed: dict[int, bytes] = {}  # offset of a batch → the batch
        self.committed_end = 0
        self.watermarks: dict[int, int] = {}
        self.heard: dict[int, list[Any]] = {}
        self.replies: dict[Any, Any] = {}
        for each in ids:
            self.add(each, self.controls, in_doubt=in_doubt)

    def add(self, node_id: int, controls: Any = (), *, in_doubt: bool = False) -> None:
        self.disks[node_id] = disk_of(node_id)
        self._new_journal(node_id, controls, in_doubt)
        self.start(node_id)

    def _new_journal(self, node_id: int, controls: Any, in_doubt: bool) -> None:
        self.journals[node_id] = self._make_journal(self.rng, controls)
        if in_doubt:
            self.journals[node_id].begin_doubt()

    # --- life and death

    def start(self, node_id: int) -> None:
        self.lives[node_id] = self.lives.get(node_id, 0) + 1
        self.watermarks[node_id] = 0
        self.heard[node_id] = []
        node = RaftNode(
            ReplicaKey(node_id, self.disks[node_id]),
            CLUSTER,
            self.journals[node_id],
            self.static,
            config=self.config,
            rng=self.rng,
            bootstrap=[endpoint(each) for each in self.journals if each != node_id],
            endpoints=(endpoint(node_id),),
        )
        self.nodes[node_id] = node
        self.step(node_id, events.Start())

    def crash(self, node_id: int, *, tell: bool = True) -> None:
        """Kill it; what was not flushed is lost. `tell`: the others' connections break, as with a killed process."""
        del self.nodes[node_id]
        self.ticks.pop(node_id, None)
        self.journals[node_id].crash()
        if tell:
            for other in self.nodes:
                if (node_id, other) not in self.faults.cut:
                    self.later(
                        self.rng.randrange(1, 4), ("event", other, self.lives[other], events.Unreachable(node_id))
                    )

    def lose_disk(self, node_id: int, *, in_doubt: bool = True) -> None:
        """It is down, and has an empty disk when it comes back. `in_doubt` False: somebody vouches for it."""
        assert node_id not in self.nodes
        self.amnesiacs.add(node_id)
        self.disks[node_id] = bytes([node_id]) + bytes(7) + next(self.order).to_bytes(8, "big")
        self._new_journal(node_id, (), in_doubt)

    def take_snapshot(self, node_id: int) -> None:
        node = self.nodes[node_id]
        self.journals[node_id].take_snapshot(node.high_watermark, node.history.controls_at(node.high_watermark))

    @property
    def in_doubt(self) -> set[int]:
        return {node_id for node_id, journal in self.journals.items() if journal.in_doubt}

    # --- time and messages

    def later(self, delay_ms: int, what: Any) -> None:
        heapq.heappush(self.queue, (self.now_ms + delay_ms, next(self.order), what))

    def run(self, ms: int) -> None:
        until = self.now_ms + ms
        while True:
            tick_at, who = min(((at, who) for who, at in self.ticks.items()), default=(until + 1, -1))
            queued_at = self.queue[0][0] if self.queue else until + 1
            at = min(tick_at, queued_at)
            if at > until:
                self.now_ms = until
                return
            self.now_ms = max(self.now_ms, at)
            if queued_at <= tick_at:
                self._happen(heapq.heappop(self.queue)[2])
            else:
                self.step(who, events.Tick())

    def _happen(self, what: Any) -> None:
        kind, node_id, life, content = what
        if node_id not in self.nodes or self.lives[node_id] != life:
            return
        if kind == "event":
            self.step(node_id, content)
        elif kind == "flush":
            self.journals[node_id].flush()
            self.step(node_id, events.Flushed())
        else:
            token, request = content
            if isinstance(request, ApiVersionsRequest):
                self._reply(node_id, effects.Reply(token, _versions()))
            else:
                self.step(node_id, events.RequestReceived(token, request))

    def step(self, node_id: int, event: Any) -> None:
        node = self.nodes[node_id]
        for effect in node.step(event, self.now_ms):
            self._do(node_id, effect)
        if node.deadline_ms is not None:
            self.ticks[node_id] = max(node.deadline_ms, self.now_ms + 1)
        else:
            self.ticks.pop(node_id, None)
        self.check(node_id)

    def _do(self, node_id: int, effect: Any) -> None:
        if isinstance(effect, effects.Send):
            self._send(node_id, effect)
        elif isinstance(effect, effects.Reply):
            self._reply(node_id, effect)
        elif isinstance(effect, effects.Flush):
            self.later(self.rng.randrange(0, 8), ("flush", node_id, self.lives[node_id], None))
        else:
            self.heard[node_id].append(effect)

    def _send(self, sender: int, effect: effects.Send) -> None:
        to = effect.address.port - 9000
        if isinstance(effect.request, FetchRequest):
            told = effect.request.topics[0].partitions[0].fetch_offset
            assert told <= self.journals[sender].flushed_offset, "it told of what it may lose"
        token = (sender, self.lives[sender], to, effect.number, next(self.order))
        copies = 1 + (self.rng.random() < self.faults.repeated)
        for _ in range(copies):
            if self._passes(sender, to) and to in self.nodes:
                delay_ms = self.rng.randrange(0, self.faults.delay_ms_max + 1)
                self.later(delay_ms, ("ask", to, self.lives[to], (token, effect.request)))
            elif to not in self.nodes and (sender, to) not in self.faults.cut:
                self.later(1, ("event", sender, self.lives[sender], events.Unanswered(effect.number)))
                self.later(1, ("event", sender, self.lives[sender], events.Unreachable(to)))

    def _passes(self, sender: int, to: int) -> bool:
        return (sender, to) not in self.faults.cut and self.rng.random() >= self.faults.lost

    def _reply(self, node_id: int, effect: effects.Reply) -> None:
        if not isinstance(effect.token, tuple):
            self.replies[effect.token] = effect.response
            return
        sender, life, _, number, _ = effect.token
        for _ in range(1 + (self.rng.random() < self.faults.repeated)):
            if self._passes(node_id, sender):
                delay_ms = self.rng.randrange(0, self.faults.delay_ms_max + 1)
                self.later(delay_ms, ("event", sender, life, events.Answered(number, effect.response)))

    def ask(self, node_id: int, name: str, request: Request) -> None:
        """A tool's request; its answer will be in `replies`."""
        self.step(node_id, events.RequestReceived(name, request))

    def append(self, value: bytes) -> bool:
        """Through whoever believes to lead."""
        leaders = [node for node in self.nodes.values() if node.is_leader]
        if not leaders:
            return False
        leader = leaders[self.rng.randrange(0, len(leaders))]
        self.journals[leader.me.id].append(value, leader.epoch)
        self.step(leader.me.id, events.JournalGrew())
        return True

    # --- what must always hold

    @property
    def leader(self) -> RaftNode | None:
        found = [node for node in self.nodes.values() if node.is_leader]
        return max(found, key=lambda node: node.epoch) if found else None

    def check(self, node_id: int) -> None:
        node, journal = self.nodes[node_id], self.journals[node_id]
        if node.is_leader:
            assert self.leaders.setdefault(node.epoch, node_id) == node_id, f"two leaders of epoch {node.epoch}"
            if node.state.is_ready and node.epoch == max(self.leaders):  # type: ignore[union-attr]
                assert journal.end_offset >= self.committed_end, "a leader lacks committed records"
        assert node.high_watermark >= self.watermarks[node_id], "the high watermark went back"
        assert node.high_watermark <= journal.end_offset, "the high watermark is beyond the log"
        if node.high_watermark > self.watermarks[node_id]:
            for batch in journal.batches:
                if batch.end <= node.high_watermark:
                    assert self.committed.setdefault(batch.base, batch.data) == batch.data, "committed twice"
            self.watermarks[node_id] = node.high_watermark
            self.committed_end = max(self.committed_end, node.high_watermark)

    def settle(self, ms: int = 20_000) -> RaftNode:
        """All is well again: there must be one leader, and all logs alike."""
        self.faults = Faults()
        for node_id in self.journals:
            if node_id not in self.nodes:
                self.start(node_id)
        self.run(ms)
        leader = self.leader
        assert leader is not None, "no leader although nothing fails"
        assert self.append(b"last"), "the leader takes nothing"
        self.run(3_000)
        leader = self.leader
        assert leader is not None
        end = self.journals[leader.me.id].end_offset
        for node_id, node in self.nodes.items():
            assert node.high_watermark == end, f"node {node_id} has {node.high_watermark} of {end}"
            assert node.leader_id == leader.me.id
            mine, its = self.journals[node_id].values(), self.journals[leader.me.id].values()
            for offset in mine.keys() & its.keys():
                assert mine[offset] == its[offset], f"logs differ at {offset}"
        for offset, data in self.committed.items():
            found = self.journals[leader.me.id].values().get(offset)
            if offset >= self.journals[leader.me.id].start_offset:
                assert found is not None and found[1] == data, f"what was committed at {offset} is lost"
        return leader


def _versions() -> ApiVersionsResponse:
    feature = ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
    return ApiVersionsResponse(error_code=0, api_keys=[], supported_features=[feature])
