"""A stage for scripts about the quorum: a World whose nodes' changes of role, votes and commits are told.

Verbs: `quorum 3` (nodes 1 to 3, all voters; `dynamic=yes`: the voters are those of the log; `doubt=yes`: their disks
were empty and nobody vouches for them), `advance 2s`, `append VALUE`, `crash N`, `start N`, `lose_disk N`, `join N` (a
new node), `add_voter N`, `remove_voter N`, `cut A B`, `isolate N`, `heal`, `stop N`, `fail_disk N`, `snapshot N`,
`state`. Fetches are not told: what they bring about is. A line that repeats one of the same block is left out.
"""

from typing import Any

from tests.raft.world import CLUSTER, World, disk_of, endpoint
from tests.support.script import Verb

from ottla.model.errors import ErrorCode
from ottla.raft import effects, events
from ottla.wire.messages.quorum.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest
from ottla.wire.messages.quorum.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.messages.quorum.vote import VoteRequest, VoteResponse


class ToldWorld(World):
    """What happens becomes lines."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.lines: list[str] = []
        self._last: dict[int, str] = {}
        self._snapshots: set[tuple[int, Any]] = set()
        super().__init__(*arguments, **options)

    def step(self, node_id: int, event: Any) -> None:
        super().step(node_id, event)
        node = self.nodes[node_id]
        now = f"{node.role.value} in epoch {node.epoch}"
        if node.leader_id >= 0 and not node.is_leader:
            now += f", led by {node.leader_id}"
        if self._last.get(node_id) != now:
            self._last[node_id] = now
            self.lines.append(f"{node_id}: {now}")

    def crash(self, node_id: int, *, tell: bool = True) -> None:
        super().crash(node_id, tell=tell)
        self._last.pop(node_id, None)

    def _do(self, node_id: int, effect: Any) -> None:
        match effect:
            case effects.Committed(high_watermark):
                self.lines.append(f"{node_id}: committed up to {high_watermark}")
            case effects.Lead(epoch):
                self.lines.append(f"{node_id}: leads epoch {epoch}")
            case effects.LoadSnapshot(snapshot):
                self.lines.append(f"{node_id}: loads the snapshot up to {snapshot.offset}")
            case effects.DoubtChanged():
                self.lines.append(f"{node_id}: {'doubts no more' if effect.is_over else 'in doubt'}")
        super()._do(node_id, effect)

    def _send(self, sender: int, effect: effects.Send) -> None:
        to = effect.address.port - 9000
        match effect.request:
            case VoteRequest(topics=[topic]):
                kind = "pre-vote" if topic.partitions[0].pre_vote else "vote"
                self.lines.append(f"{sender} → {to}: {kind} in epoch {topic.partitions[0].replica_epoch}?")
            case BeginQuorumEpochRequest():
                self.lines.append(f"{sender} → {to}: the epoch begins")
            case EndQuorumEpochRequest():
                self.lines.append(f"{sender} → {to}: the epoch ends")
            case FetchSnapshotRequest(topics=[topic]) if topic.partitions[0].position == 0:
                self.lines.append(f"{sender} → {to}: the snapshot, please")
        super()._send(sender, effect)

    def _reply(self, node_id: int, effect: effects.Reply) -> None:
        response: Any = effect.response
        if not isinstance(effect.token, tuple):
            self.lines.append(f"{node_id} → {effect.token}: {ErrorCode(response.error_code).name}")
        elif isinstance(response, VoteResponse):
            told = response.topics[0].partitions[0]
            error = ErrorCode(told.error_code)
            answer = error.name if error else "yes" if told.vote_granted else "no"
            self.lines.append(f"{node_id} → {effect.token[0]}: {answer} (epoch {told.leader_epoch})")
        super()._reply(node_id, effect)


class RaftStage:
    def __init__(self) -> None:
        self.world: ToldWorld

    def told(self) -> list[str]:
        lines, self.world.lines = self.world.lines, []
        return list(dict.fromkeys(lines))

    def advance(self, ms: int) -> None:
        self.world.run(ms)

    def quorum(self, size: str, dynamic: str = "no", doubt: str = "no", seed: str = "1") -> None:
        ids = list(range(1, int(size) + 1))
        self.world = ToldWorld(int(seed), ids, dynamic=dynamic == "yes", in_doubt=doubt == "yes")

    def append(self, value: str) -> None:
        if not self.world.append(value.encode()):
            self.world.lines.append("nobody takes it")

    def join(self, node: str) -> None:
        self.world.add(int(node))

    def add_voter(self, node: str) -> None:
        to, listener = endpoint(int(node)), AddRaftVoterRequest.Listener
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER,
            timeout_ms=10_000,
            voter_id=int(node),
            voter_directory_id=disk_of(int(node)),
            listeners=[listener(name=to.name, host=to.host, port=to.port)],
            ack_when_committed=True,
        )
        self._ask("tool", request)

    def remove_voter(self, node: str) -> None:
        request = RemoveRaftVoterRequest(cluster_id=CLUSTER, voter_id=int(node), voter_directory_id=disk_of(int(node)))
        self._ask("tool", request)

    def _ask(self, name: str, request: Any) -> None:
        leader = self.world.leader
        assert leader is not None, "nobody leads"
        self.world.ask(leader.me.id, name, request)

    def cut(self, a: str, b: str) -> None:
        self.world.faults.cut |= {(int(a), int(b)), (int(b), int(a))}

    def isolate(self, node: str) -> None:
        for other in self.world.journals:
            if other != int(node):
                self.cut(node, str(other))

    def heal(self) -> None:
        self.world.faults.cut.clear()

    def state(self) -> None:
        for node_id, node in sorted(self.world.nodes.items()):
            journal = self.world.journals[node_id]
            voters = ",".join(str(each) for each in node.voters)
            self.world.lines.append(
                f"{node_id}: {node.role.value}, epoch {node.epoch}, log {journal.start_offset}..{journal.end_offset}, "
                f"high watermark {node.high_watermark}, voters {voters}"
            )

    def verbs(self) -> dict[str, Verb]:
        return {
            "quorum": self.quorum,
            "append": self.append,
            "join": self.join,
            "add_voter": self.add_voter,
            "remove_voter": self.remove_voter,
            "cut": self.cut,
            "isolate": self.isolate,
            "heal": self.heal,
            "state": self.state,
            "crash": lambda node: self.world.crash(int(node)),
            "start": lambda node: self.world.start(int(node)),
            "lose_disk": lambda node: self.world.lose_disk(int(node)),
            "snapshot": lambda node: self.world.take_snapshot(int(node)),
            "stop": lambda node: self.world.step(int(node), events.StopAsked()),
            "fail_disk": lambda node: self.world.step(int(node), events.JournalFailed()),
        }
