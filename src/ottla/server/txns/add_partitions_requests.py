"""AddPartitionsToTxn requests from a partition's leader to the transaction coordinator on another node (KIP-890).

All transactions that wait for one node's answer are sent in one request, one request at a time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from ottla.client.errors import error_code
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.server.peers.peer_requests import PeerQuestions
from ottla.wire.messages.txns.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    Topic,
)

Transaction = AddPartitionsToTxnRequest.Transaction
Codes = dict[TopicPartition, ErrorCode]


class Question(NamedTuple):
    """Are the partitions part of the transaction? If not `verify_only`, the coordinator adds those that are not."""

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    partitions: tuple[TopicPartition, ...]
    verify_only: bool


class AddPartitionsRequests(PeerQuestions[int, Question, AddPartitionsToTxnResponse, Codes]):
    purpose = "transactions"

    def node_of(self, key: int) -> int:
        return key

    def identity(self, question: Question) -> str:
        return question.transactional_id

    def request(self, key: int, questions: list[Question]) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(transactions=[_transaction(each) for each in questions])

    def answers(self, key: int, response: AddPartitionsToTxnResponse) -> dict[Hashable, Codes] | ApiError:
        if response.error_code:
            return ApiError(error_code(response.error_code))
        return {
            result.transactional_id: {
                TopicPartition(topic.name, each.partition_index): error_code(each.partition_error_code)
                for topic in result.topic_results
                for each in topic.results_by_partition
            }
            for result in response.results_by_transaction
        }

    def refused(self, question: Question, error: ApiError) -> Codes:
        return dict.fromkeys(question.partitions, error.code)


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
