"""A stage for the transaction coordinator: producers by transactional id, partitions as `topic-index`."""

from dataclasses import dataclass
from typing import Any

from tests.support.script import Stage, Verb

from ottla.machine.keyed import Entry, types_of
from ottla.machine.kit import Result, Timer
from ottla.model.ids import ProducerIdentity, TopicPartition
from ottla.model.node_config import NodeConfig
from ottla.txns.commands.add_partitions import AddPartitions, VerifyPartitions
from ottla.txns.commands.describe import Describe
from ottla.txns.commands.end import EndTransaction, MarkersWritten
from ottla.txns.commands.init_producer import InitProducer
from ottla.txns.effects import WriteMarkers
from ottla.txns.machine import TransactionsMachine
from ottla.txns.states import TxnState
from ottla.txns.transaction import TransactionMetadata, transaction_of
from ottla.txns.view import TransactionsState, TxnsView
from ottla.wire.journal import transaction_state

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "transaction.max.timeout.ms": "900000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "10000",
    "transactional.id.expiration.ms": "7200000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "3600000",
}


class Cluster:
    """What the machine asks its surroundings."""

    def __init__(self, version: int = 2) -> None:
        self.config = NodeConfig(SETTINGS).broker
        self.version = version
        self.producer_ids = 1000

    def next_producer_id(self) -> int:
        self.producer_ids += 1
        return self.producer_ids

    def machine(self) -> TransactionsMachine:
        view = TxnsView(TransactionsState(), lambda: self.config, lambda: self.version, self.next_producer_id)
        return TransactionsMachine(view)


@dataclass(frozen=True)
class Wind:
    """The producer has come to this epoch, never mind how."""

    transactional_id: str
    epoch: int

    def decide(self, view: TxnsView, now_ms: int) -> Result[Entry, Any]:
        found = view.known(self.transactional_id)
        return Result(records=[view.entry(found._replace(epoch=self.epoch))])


def new_stage(cluster: Cluster | None = None) -> Stage[TransactionsMachine]:
    return Stage((cluster or Cluster()).machine, types_of(transaction_state), show, now_ms=1_000_000)


def partitions(words: tuple[str, ...]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, int(index)) for topic, _, index in (word.rpartition("-") for word in words))


def show(thing: Any) -> str | None:
    match thing:
        case Entry(value=None):
            return f"forgot {thing.key.transactional_id}"
        case Entry():
            return f"wrote {_described(transaction_of(thing))} (v{thing.version})"
        case WriteMarkers():
            end = "commit" if thing.commit else "abort"
            where = ", ".join(map(str, thing.partitions)) or "nobody"
            return f"tell {end} of {thing.producer_id}/{thing.epoch} to {where} (tv{thing.transaction_version})"
        case ProducerIdentity():
            return f"{thing.producer_id}/{thing.epoch}"
        case TransactionMetadata():
            return f"{_described(thing)}, {thing.timeout_ms} ms"
        case list():
            return f"outside: {', '.join(map(str, thing)) or 'none'}"
        case Timer():
            return f"timer {thing.key} at {thing.deadline_ms}"
        case _:
            return None


def _described(transaction: TransactionMetadata) -> str:
    text = f"{transaction.transactional_id} {transaction.state.text} {transaction.producer_id}/{transaction.epoch}"
    if transaction.partitions:
        text += f" [{' '.join(map(str, transaction.partitions))}]"
    if transaction.next_producer_id >= 0:
        text += f" then {transaction.next_producer_id}"
    if transaction.client_version:
        text += f" tv{transaction.client_version}"
    return text


def verbs_of(stage: Stage[TransactionsMachine], cluster: Cluster) -> dict[str, Verb]:
    """Producers are who the coordinator says they are unless a command says `pid=` or `epoch=`."""

    def producer(id: str, pid: str | None, epoch: str | None) -> tuple[int, int]:
        found = stage.machine.view.state.transactions.get(id)
        at = found.epoch if found else 0
        if epoch is not None:
            at = at + int(epoch) if epoch[0] in "+-" else int(epoch)
        return int(pid) if pid is not None else found.producer_id if found else 7, at

    def init(id: str, timeout: str = "60000", pid: str | None = None, epoch: str | None = None) -> None:
        expected = ProducerIdentity(*producer(id, pid, epoch)) if pid is not None or epoch is not None else None
        stage.submit(id, InitProducer(id, int(timeout), expected))

    def add(id: str, *words: str, pid: str | None = None, epoch: str | None = None, tv: str = "0") -> None:
        stage.submit(id, AddPartitions(id, *producer(id, pid, epoch), partitions(words), int(tv)))

    def verify(id: str, *words: str, pid: str | None = None, epoch: str | None = None) -> None:
        stage.submit(id, VerifyPartitions(id, *producer(id, pid, epoch), partitions(words)))

    def end(id: str, how: str, pid: str | None = None, epoch: str | None = None, tv: str = "0") -> None:
        stage.submit(id, EndTransaction(id, *producer(id, pid, epoch), how == "commit", int(tv)))

    def told(id: str, epoch: str | None = None) -> None:
        stage.submit(id, MarkersWritten(id, *producer(id, None, epoch)))

    def version(level: str) -> None:
        cluster.version = int(level)

    return {
        "init": init,
        "add": add,
        "verify": verify,
        "end": end,
        "told": told,
        "version": version,
        "describe": lambda id: stage.submit(id, Describe(id)),
        "wind": lambda id, epoch: stage.submit(id, Wind(id, int(epoch))),
    }


def durable(machine: TransactionsMachine) -> dict[str, TransactionMetadata]:
    """What a journal gives back: all but who may ask twice."""
    return {id: each._replace(last_epoch=-1) for id, each in machine.view.state.transactions.items()}


PREPARED = (TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT)
