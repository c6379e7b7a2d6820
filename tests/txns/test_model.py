"""The transaction coordinator against what must hold whatever happens: producers, clocks, crashes, in any order."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.txns.stage import PREPARED, Cluster, Wind, durable, new_stage, show

from ottla.machine.keyed import Entry, decode, types_of
from ottla.model.errors import ApiError
from ottla.model.ids import ProducerIdentity, TopicPartition
from ottla.txns.commands.add_partitions import AddPartitions
from ottla.txns.commands.end import EndTransaction, MarkersWritten
from ottla.txns.commands.init_producer import InitProducer
from ottla.txns.effects import WriteMarkers
from ottla.txns.states import AT_REST, TxnState
from ottla.txns.transaction import TransactionMetadata, transaction_of
from ottla.wire.journal import transaction_state

IDS = st.sampled_from(("anna", "bert"))
PARTITIONS = st.lists(st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 1)), min_size=1, max_size=3)
OFFSETS = st.sampled_from((0, 0, 0, 0, -1, 1))  # mostly the right epoch
VERSIONS = st.sampled_from((0, 2))
TYPES = types_of(transaction_state)

# From which states a record may lead to which; the same again where a producer asks again or adds more.
NEXT = {
    TxnState.EMPTY: (TxnState.EMPTY, TxnState.ONGOING, TxnState.PREPARE_ABORT),
    TxnState.ONGOING: (TxnState.ONGOING, TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT),
    TxnState.PREPARE_COMMIT: (TxnState.COMPLETE_COMMIT,),
    TxnState.PREPARE_ABORT: (TxnState.COMPLETE_ABORT,),
    TxnState.COMPLETE_COMMIT: (TxnState.EMPTY, TxnState.ONGOING, TxnState.PREPARE_ABORT),
    TxnState.COMPLETE_ABORT: (TxnState.EMPTY, TxnState.ONGOING, TxnState.PREPARE_ABORT),
}


class Transactions(RuleBasedStateMachine):
    @initialize(version=st.sampled_from((0, 1, 2)), wound=st.booleans())
    def begin(self, version: int, wound: bool) -> None:
        self.cluster = Cluster(version)
        self.stage = new_stage(self.cluster)
        self.stage._show = self.overhear
        self.wanted: list[WriteMarkers] = []
        self.read = 0
        self.latest: dict[str, TransactionMetadata] = {}
        self.epochs: dict[int, int] = {}  # producer id -> highest epoch ever written
        self.given: dict[ProducerIdentity, str] = {}  # to whom an id and epoch were given by InitProducerId
        self.wound = wound

    def overhear(self, thing: Any) -> str | None:
        if isinstance(thing, WriteMarkers):
            self.wanted.append(thing)
        return show(thing)

    def present(self, id: str, offset: int) -> tuple[int, int]:
        found = self.stage.machine.view.state.transactions.get(id)
        return (found.producer_id, found.epoch + offset) if found else (7, 0)

    @rule(id=IDS, known=st.booleans(), offset=OFFSETS, timeout_ms=st.sampled_from((1_000, 15_000, 60_000)))
    def init(self, id: str, known: bool, offset: int, timeout_ms: int) -> None:
        expected = ProducerIdentity(*self.present(id, offset)) if known else None
        replies: list[Any] = []
        self.stage._runner.submit(InitProducer(id, timeout_ms, expected), self.stage.moment(), replies.append)
        self.stage.commit()
        (reply,) = replies
        if isinstance(reply, ProducerIdentity) and expected is None:
            assert reply not in self.given, "two producers were given the same epoch"
            self.given[reply] = id
        else:
            assert isinstance(reply, ProducerIdentity | ApiError)

    @rule(id=IDS, offset=OFFSETS, partitions=PARTITIONS, version=VERSIONS)
    def add(self, id: str, offset: int, partitions: list[TopicPartition], version: int) -> None:
        self.stage.submit(id, AddPartitions(id, *self.present(id, offset), tuple(partitions), version))

    @rule(id=IDS, offset=OFFSETS, commit=st.booleans(), version=VERSIONS)
    def end(self, id: str, offset: int, commit: bool, version: int) -> None:
        self.stage.submit(id, EndTransaction(id, *self.present(id, offset), commit, version))

    @rule(position=st.integers(0, 3))
    def tell(self, position: int) -> None:
        """Some transaction's markers are written; those of a coordinator that is gone may be, too."""
        if self.wanted:
            done = self.wanted.pop(position % len(self.wanted))
            self.stage.submit("told", MarkersWritten(done.transactional_id, done.producer_id, done.epoch))

    @rule(seconds=st.sampled_from((1, 10, 3600, 10_000)))
    def advance(self, seconds: int) -> None:
        self.stage.advance(seconds * 1000)

    @rule(id=IDS)
    def wind(self, id: str) -> None:
        """Epochs near their end, so that they run out while we watch."""
        found = self.stage.machine.view.state.transactions.get(id)
        if self.wound and found is not None and found.state == TxnState.EMPTY and 0 < found.epoch < 1000:
            self.stage.submit(id, Wind(id, 32_764))

    @rule()
    def restart(self) -> None:
        before = durable(self.stage.machine)
        self.stage.restart()
        assert durable(self.stage.machine) == before
        prepared = {id for id, each in before.items() if each.state in PREPARED}
        assert prepared <= {each.transactional_id for each in self.wanted}, "a decided transaction was forgotten"

    @invariant()
    def journal_is_lawful(self) -> None:
        if not hasattr(self, "stage"):
            return
        for written in self.stage.journal[self.read :]:
            assert isinstance(written, tuple)
            entry = decode(written[0], written[1], TYPES)
            assert entry is not None
            self.check(entry)
        self.read = len(self.stage.journal)

    def check(self, entry: Entry) -> None:
        id = entry.key.transactional_id
        before = self.latest.get(id)
        if entry.value is None:
            assert before is not None and before.state in AT_REST
            del self.latest[id]
            return
        now = transaction_of(entry)
        if before is None:
            assert now.state == TxnState.EMPTY
        else:
            repeated = now == before and now.state in AT_REST  # its end was asked for again
            assert repeated or now.state in NEXT[before.state]
            if before.state in PREPARED:
                assert not now.partitions
            elif before.state == TxnState.ONGOING:
                assert set(before.partitions) <= set(now.partitions)
        assert now.epoch >= self.epochs.get(now.producer_id, -1), "an epoch went back"
        assert now.state == TxnState.ONGOING or now.state in PREPARED or not now.partitions
        self.epochs[now.producer_id] = now.epoch
        self.latest[id] = now


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
