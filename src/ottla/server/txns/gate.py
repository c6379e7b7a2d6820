"""TransactionGate: checks whether a batch, or a group's offsets, may join the producer's transaction (KIP-890).

Before anything transactional is appended to a partition, the partition's leader asks the transaction coordinator.
Otherwise a late batch could open a transaction that is never ended. What the leader asks depends on the client, whose
request version shows what it supports: newer clients leave it to the leader to add the partition to the transaction;
older ones have to add it themselves, and the leader only verifies that they have. No question is needed for a partition
that already takes part in the transaction.

No marker may come between the coordinator's answer and the append. If the coordinator is this node, both happen without
interruption: a produce that has to wait for the answer keeps its turn on its connection (`server/api/turns.py`). If the
coordinator is another node, the gate notes the markers that are written while the question is under way
(`marker_written`). After a marker, a client that only verifies is refused. A client that adds is told to retry: the
marker may be that of the previous transaction, whose end is answered before all its markers are written. If it was the
marker of this transaction, the next answer says so, because each end of such a transaction raises the producer's epoch.
In a new leader epoch it is unknown whether there was a marker, so the answer is not used and the client retries, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.model.settings.transactions import (
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS,
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS,
    TRANSACTION_PARTITION_VERIFICATION_ENABLE,
)
from ottla.server.coordination.hosts import Coordinators
from ottla.server.loop.later import Later, settled
from ottla.server.loop.retrying import pauses_for, retrying
from ottla.server.loop.runtime import Runtime
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.settings.configs import Configs
from ottla.server.txns.add_partitions_requests import AddPartitionsRequests, Codes, Question
from ottla.server.txns.verdict import TransactionalBatch, Verdict
from ottla.txns.commands.add_partitions import AddPartitions, VerifyPartitions
from ottla.txns.transaction import EPOCH_BUMPS_SINCE
from ottla.txns.view import TxnsView

# No field tells these versions: clients that use them know the error TRANSACTION_ABORTABLE (KIP-890), and clients that
# use a later one leave it to the broker to add partitions to the transaction.
_FIRST_PRODUCE_VERSION_WITH_ABORTABLE = 11
_FIRST_COMMIT_VERSION_WITH_ABORTABLE = 4
_SEVERAL_PRODUCERS = "Transactional records contained more than one producer ID"

# Producers expect these errors only from the coordinator; as the answer to a produce they get a retriable one.
_COORDINATOR_ERRORS = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
)


class Client(Enum):
    """The kind of client, by the version of its request."""

    VERIFIES_WITHOUT_ABORTABLE = 0  # the client does not know TRANSACTION_ABORTABLE
    VERIFIES = 1
    ADDS = 2  # newer clients: the leader adds the partition

    @staticmethod
    def of(version: int, first_with_abortable: int) -> Client:
        return Client(min(max(version - first_with_abortable + 1, 0), 2))


class TransactionGate:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        metadata: MetadataHost,
        coordinators: Coordinators[TxnsView],
        requests: AddPartitionsRequests,
    ) -> None:
        self._runtime = runtime
        self._configs = configs
        self._metadata = metadata
        self._coordinators = coordinators
        self._requests = requests
        # By producer and partition: the questions under way, each as the set of partitions that got a marker since
        # then.
        self._asking: dict[tuple[int, TopicPartition], list[set[TopicPartition]]] = {}

    def admit_batches(
        self, transactional_id: str, batches: Sequence[TransactionalBatch], version: int
    ) -> Later[Verdict]:
        """Return which of the batches of a produce (of this version) may be appended."""
        producers = {(header.producer_id, header.producer_epoch) for header, _ in batches}
        if len(producers) > 1:
            return settled(Verdict(refuses_all=ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, _SEVERAL_PRODUCERS)))
        new = tuple(
            TopicPartition(partition.topic, partition.index)
            for header, partition in batches
            if partition is not None
            and not partition.log.producers.has_transaction(header.producer_id, header.producer_epoch)
        )
        if not new:
            return settled(Verdict())
        ((producer_id, epoch),) = producers
        client = Client.of(version, _FIRST_PRODUCE_VERSION_WITH_ABORTABLE)
        question = Question(transactional_id, producer_id, epoch, new, verify_only=client is not Client.ADDS)
        ask = partial(self._ask, question, client)
        codes = ask() if question.verify_only else self._ask_patiently(ask)
        added = () if question.verify_only else new
        return codes.map(
            lambda refused: Verdict(
                {where: _told_to_producer(code, client) for where, code in refused.items()}, added=added
            )
        )

    def admit_offsets(
        self,
        transactional_id: str,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        journal: TopicPartition,
        version: int,
    ) -> Later[ErrorCode]:
        """Return NONE if a TxnOffsetCommit (of this version) may write to the group's partition of
        `__consumer_offsets`.
        """
        client = Client.of(version, _FIRST_COMMIT_VERSION_WITH_ABORTABLE)
        question = Question(transactional_id, producer_id, epoch, (journal,), verify_only=client is not Client.ADDS)
        return self._ask(question, client).map(lambda refused: refused.get(journal, ErrorCode.NONE))

    def marker_written(self, where: TopicPartition, producer_id: ProducerId) -> None:
        """Note that a marker of the producer was appended to a partition led here."""
        for marked in self._asking.get((producer_id, where), ()):
            marked.add(where)

    # --- asking the coordinator; the answers are the refused partitions with error codes that the client knows

    def _ask_patiently(self, ask: Callable[[], Later[Codes]]) -> Later[Codes]:
        """Ask again for a while: the markers of the producer's last transaction may still be being written."""
        return retrying(
            self._runtime.loop,
            ask,
            lambda refused: ErrorCode.CONCURRENT_TRANSACTIONS in refused.values(),
            patience(self._runtime, self._configs),
        )

    def _ask(self, question: Question, client: Client) -> Later[Codes]:
        if question.verify_only and not self._configs.broker[TRANSACTION_PARTITION_VERIFICATION_ENABLE]:
            return settled({})
        node_id = self._coordinators.elsewhere(question.transactional_id)
        codes = self._ask_here(question) if node_id is None else self._ask_elsewhere(node_id, question)
        return codes.map(lambda found: {where: _told(code, client) for where, code in found.items() if code})

    def _ask_here(self, question: Question) -> Later[Codes]:
        id, producer_id, epoch, partitions, verify_only = question
        command = (
            VerifyPartitions(id, producer_id, epoch, partitions)
            if verify_only
            else AddPartitions(id, producer_id, epoch, partitions, EPOCH_BUMPS_SINCE)
        )

        def codes(reply: ApiError | list[TopicPartition] | None) -> Codes:
            if isinstance(reply, ApiError):
                return dict.fromkeys(partitions, reply.code)
            return dict.fromkeys(reply or (), ErrorCode.TRANSACTION_ABORTABLE)

        return self._coordinators.submit(id, command).map(codes)

    def _ask_elsewhere(self, node_id: int, question: Question) -> Later[Codes]:
        marked: set[TopicPartition] = set()
        asked = [(question.producer_id, where) for where in question.partitions]
        for key in asked:
            self._asking.setdefault(key, []).append(marked)
        epochs = self._leader_epochs(question)

        def judge(answer: Codes) -> Codes:
            for key in asked:
                left = [each for each in self._asking[key] if each is not marked]
                if left:
                    self._asking[key] = left
                else:
                    del self._asking[key]
            codes: Codes = {}
            for where, epoch in self._leader_epochs(question).items():
                code = answer.get(where, ErrorCode.NETWORK_EXCEPTION)
                if code == ErrorCode.NONE and where in marked and question.verify_only:
                    code = ErrorCode.INVALID_TXN_STATE
                elif code == ErrorCode.NONE and (where in marked or epoch != epochs[where]):
                    code = ErrorCode.NETWORK_EXCEPTION  # the client retries
                codes[where] = code
            return codes

        return self._requests.ask(node_id, question).map(judge)

    def _leader_epochs(self, question: Question) -> dict[TopicPartition, int]:
        topics = self._metadata.state.topics
        found = {}
        for where in question.partitions:
            topic = topics.get(where.topic)
            known = topic is not None and where.partition < len(topic.partitions)
            found[where] = topic.partitions[where.partition].leader_epoch if topic is not None and known else -1
        return found


def patience(runtime: Runtime, configs: Configs) -> Iterator[float]:
    """Return the pauses between attempts to add partitions to a transaction while the previous one is being completed.
    A client that is told to retry would pause for longer.
    """
    settings = configs.broker
    return pauses_for(
        runtime.steady_ms,
        settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS],
        settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS],
    )


def _told(code: ErrorCode, client: Client) -> ErrorCode:
    """Convert a coordinator's refusal to a code that the client knows."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and client is Client.VERIFIES_WITHOUT_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _told_to_producer(code: ErrorCode, client: Client) -> ApiError:
    if code == ErrorCode.INVALID_TXN_STATE:
        return ApiError(code, "Partition was not added to the transaction")
    if code in _COORDINATOR_ERRORS and not (code == ErrorCode.CONCURRENT_TRANSACTIONS and client is Client.ADDS):
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}",
        )
    return ApiError(code)
