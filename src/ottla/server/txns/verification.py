"""Asking transaction coordinators of other nodes whether partitions led here belong to a transaction (KIP-890).

All transactions that wait for one node's answer go in one AddPartitionsToTxn, one request at a time. While it is under
way the transaction may end, and its marker come first: a batch that were written then would open a transaction that
nobody ever ends. So whoever asks has a guard (`server/txns/guards.py`), which the producer's next marker breaks. In a
new leader epoch nobody knows whether there was one: the answer does not count, and the client asks again.

Who wanted to be added asks again after a marker, too. It may have been that of the transaction before, whose end was
answered before all its markers were written: with a question that was long on its way that is quite usual, and clients
take INVALID_TXN_STATE for the end of everything. Were it that of this transaction, the next answer would say so: each
end of such a transaction raises the epoch.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.errors import error_code
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.server.loop.later import Later
from ottla.server.peers.peer_requests import Outbox, give
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnRequest, Topic

if TYPE_CHECKING:
    from ottla.server.api.context import Services

Transaction = AddPartitionsToTxnRequest.Transaction
# By partition; only those that are refused.
Refusals = dict[TopicPartition, ErrorCode]


class Question(NamedTuple):
    """What a leader wants to know, or (not `verify_only`) wants done, about one transaction."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool


class _Asked(NamedTuple):
    question: Question
    later: Later[Refusals]


class Verification:
    """The questions of this node's partitions to other nodes' coordinators."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._outbox: Outbox[int, _Asked] = Outbox(self._send, lambda asked: asked.question.transactional_id)

    def ask(self, node_id: int, question: Question) -> Later[Refusals]:
        """Which of the partitions may not be written to, and why."""
        asked = _Asked(question, Later())
        guards = self._services.guards
        broken = guards.begin(question.producer_id, question.partitions)
        epochs = self._leader_epochs(question)

        def judge(refusals: Refusals) -> Refusals:
            guards.end(question.producer_id, question.partitions, broken)
            for where, epoch in self._leader_epochs(question).items():
                if where in broken and question.verify_only:
                    refusals.setdefault(where, ErrorCode.INVALID_TXN_STATE)
                elif where in broken or epochs[where] != epoch:
                    refusals.setdefault(where, ErrorCode.NETWORK_EXCEPTION)  # to be asked again
            return refusals

        answered = asked.later.map(judge)
        self._outbox.put(node_id, asked)
        return answered

    def _leader_epochs(self, question: Question) -> dict[TopicPartition, int]:
        topics = self._services.metadata.state.topics
        found = {}
        for where in question.partitions:
            topic = topics.get(where.topic)
            known = topic is not None and where.partition < len(topic.partitions)
            found[where] = topic.partitions[where.partition].leader_epoch if topic is not None and known else -1
        return found

    def _send(self, node_id: int, items: list[_Asked]) -> Later[None]:
        request = AddPartitionsToTxnRequest(transactions=[_transaction(each.question) for each in items])
        return self._services.peer_requests.ask(node_id, request, "transactions").map(partial(_settle, items))


def _transaction(question: Question) -> Transaction:
    topics: dict[str, list[int]] = {}
    for where in question.partitions:
        topics.setdefault(where.topic, []).append(where.partition)
    return Transaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.epoch,
        verify_only=question.verify_only,
        topics=[Topic(name=name, partitions=indexes) for name, indexes in topics.items()],
    )


def _settle(items: list[_Asked], answer: Any) -> None:
    if not isinstance(answer, ApiError) and answer.error_code:
        answer = ApiError(error_code(answer.error_code))
    if isinstance(answer, ApiError):
        for each in items:
            give(each.later, dict.fromkeys(each.question.partitions, answer.code))
        return
    found: dict[str, dict[TopicPartition, int]] = {}
    for result in answer.results_by_transaction:
        codes = found.setdefault(result.transactional_id, {})
        for topic in result.topic_results:
            for each_result in topic.results_by_partition:
                where = TopicPartition(topic.name, each_result.partition_index)
                codes[where] = each_result.partition_error_code
    for asked in items:
        codes = found.get(asked.question.transactional_id, {})
        told = {where: codes.get(where, int(ErrorCode.NETWORK_EXCEPTION)) for where in asked.question.partitions}
        give(asked.later, {where: error_code(code) for where, code in told.items() if code})
