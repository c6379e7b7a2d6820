"""A stage for scripts about one partition: what each replica is after a step, where that changed.

Verbs: `replicas 3` (node 1 leads; `min=2`: min.insync.replicas), `produce N` (acks=all, to node N), `fetch N …` (these
followers fetch, and get their answers), `advance 500`, `fence N`, `unfence N`, `elect N` (what the controller decides;
nodes hear of it by `tell`), `tell N …` (without a number: all), `propose N` (the leader asks for another ISR, if it
wants one; the controller decides, the leader hears of it), `propose_only N` (it is under way), `judge`, `crash N`,
`restart N`, `state`. After each step the invariants of `Cluster.check` hold.
"""

from tests.log.logs import batch
from tests.replica.cluster import Cluster
from tests.support.script import Verb

from ottla.log.config import LogConfig
from ottla.model.errors import ErrorCode
from ottla.replica.partition import Partition


class ReplicaStage:
    def __init__(self) -> None:
        self.cluster: Cluster
        self.lines: list[str] = []
        self._last: dict[int, str] = {}

    def told(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines

    def advance(self, ms: int) -> None:
        self.cluster.now_ms += ms

    def replicas(self, size: str, min: str = "1") -> None:
        self.cluster = Cluster(int(size), config=LogConfig(min_insync_replicas=int(min)))
        self._last = {}

    def produce(self, node: str) -> None:
        code = self.cluster.produce(int(node))
        if code:
            self.lines.append(f"producer: {code.name}")

    def fetch(self, *nodes: str) -> None:
        for node in nodes:
            code = self.cluster.ask(int(node))
            if code:
                self.lines.append(f"{node}: {code.name}")
            while self.cluster.answers:
                answer = self.cluster.answers[0]
                if answer.diverging is not None:
                    epoch, end = answer.diverging
                    self.lines.append(f"{node}: the histories part: epoch {epoch} ends at {end}")
                self.cluster.answer()

    def tell(self, *nodes: str) -> None:
        for node in nodes or map(str, self.cluster.nodes):
            self.cluster.tell(int(node))

    def propose_only(self, node: str) -> None:
        self.cluster.propose(int(node))
        for _, proposal in self.cluster.proposals:
            members = ",".join(map(str, sorted(proposal.members)))
            self.lines.append(f"{node}: asks for the ISR {members}")

    def judge(self) -> None:
        self.cluster.judge()
        for _, verdict in self.cluster.verdicts:
            if isinstance(verdict, ErrorCode):
                self.lines.append(f"controller: {verdict.name}")
        self.cluster.hear()

    def propose(self, node: str) -> None:
        self.propose_only(node)
        while self.cluster.proposals:
            self.judge()

    def append_alone(self, node: str) -> None:
        """Without acks: nobody waits for it."""
        partition = self.cluster.nodes[int(node)].partition
        assert partition is not None
        partition.append(batch(), now_ms=self.cluster.now_ms)

    def state(self) -> None:
        self._last = {}

    def look(self) -> None:
        """Tell of the replicas that are not what they were."""
        self.cluster.check()
        for node_id, node in self.cluster.nodes.items():
            now = _shown(node.partition)
            if self._last.get(node_id) != now:
                self._last[node_id] = now
                self.lines.append(f"{node_id}: {now}")

    def verbs(self) -> dict[str, Verb]:
        cluster_verbs = {
            name: (lambda node, name=name: getattr(self.cluster, name)(int(node)))
            for name in ("fence", "unfence", "elect", "crash", "restart")
        }
        own = (
            self.replicas,
            self.produce,
            self.fetch,
            self.tell,
            self.propose,
            self.propose_only,
            self.judge,
            self.append_alone,
            self.state,
        )
        found: dict[str, Verb] = {**cluster_verbs, **{verb.__name__: verb for verb in own}}
        return {name: self._and_look(verb) for name, verb in found.items()}

    def _and_look(self, verb: Verb) -> Verb:
        def both(*words: str, **options: str) -> None:
            verb(*words, **options)
            self.look()

        return both


def _shown(partition: Partition | None) -> str:
    if partition is None:
        return "down"
    role = f"leads epoch {partition.leader_epoch}"
    if not partition.is_leader:
        leader = partition.leader_id
        role = f"follows {leader} in epoch {partition.leader_epoch}" if leader >= 0 else "without a leader"
    if partition.in_sync is not None:
        members = ",".join(map(str, sorted(partition.in_sync.isr)))
        role += f", ISR {members}"
        coming = sorted(partition.in_sync.maximal - set(partition.in_sync.isr))
        if coming:
            role += f" (and {','.join(map(str, coming))})"
    return f"{role}, log ends at {partition.log.next_offset}, high watermark {partition.high_watermark}"
