"""Before anything transactional is written: is the partition part of the producer's transaction?

The leader of a partition asks the transaction coordinator (KIP-890), so that no late batch can open a transaction that
nobody will ever end. Which question it asks depends on the client, which shows by its request's version what it
understands: newer ones leave it to the leader to add the partition; for others, who have to add it themselves, the
leader asks whether they have. A partition in which the transaction already is needs no question.

The coordinator's answer and the append that follows happen in one go, so no marker can come between them; where the
coordinator is another node, `server/txns/verification.py` sees to that. A produce that waits for that answer keeps its
turn on its connection (`server/api/turns.py`): batches of one producer are appended in the order in which they were
sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.settings.transactions import (
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS,
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS,
    TRANSACTION_PARTITION_VERIFICATION_ENABLE,
)
from ottla.server.api.context import Context
from ottla.server.loop.later import Later
from ottla.server.txns.verification import Question, Refusals
from ottla.txns.commands.add_partitions import AddPartitions, VerifyPartitions
from ottla.txns.transaction import EPOCH_BUMPS_SINCE


class Admission(Enum):
    """What is asked of the coordinator, and which refusals the client understands."""

    VERIFY_FOR_OLD = 0  # clients that do not know TRANSACTION_ABORTABLE
    VERIFY = 1
    ADD = 2

    @staticmethod
    def of_produce(version: int) -> Admission:
        return _by_version(version, since=11)

    @staticmethod
    def of_txn_offset_commit(version: int) -> Admission:
        return _by_version(version, since=4)


def _by_version(version: int, since: int) -> Admission:
    if version < since:
        return Admission.VERIFY_FOR_OLD
    return Admission.VERIFY if version == since else Admission.ADD


def ensure_in_transaction(
    context: Context,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    partitions: Sequence[TopicPartition],
    admission: Admission,
) -> Later[ErrorCode]:
    """NONE if all of the partitions are part of the transaction (now); else why the first one is not."""
    return admit(context, transactional_id, producer_id, epoch, partitions, admission).map(
        lambda refusals: next(iter(refusals.values()), ErrorCode.NONE)
    )


def admit(
    context: Context,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    partitions: Sequence[TopicPartition],
    admission: Admission,
) -> Later[Refusals]:
    """Which of the partitions may not be written to, and why."""
    wanted = tuple(partitions)
    if admission is not Admission.ADD and not context.settings[TRANSACTION_PARTITION_VERIFICATION_ENABLE]:
        believed: Later[Refusals] = Later()
        believed.set({})
        return believed
    command: AddPartitions | VerifyPartitions
    if admission is Admission.ADD:
        command = AddPartitions(transactional_id, producer_id, epoch, wanted, EPOCH_BUMPS_SINCE)
    else:
        command = VerifyPartitions(transactional_id, producer_id, epoch, wanted)

    def refusals(reply: ApiError | list[TopicPartition] | None) -> Refusals:
        if isinstance(reply, ApiError):
            return dict.fromkeys(wanted, _told(reply.code, admission))
        return dict.fromkeys(reply or (), _told(ErrorCode.TRANSACTION_ABORTABLE, admission))

    services = context.services
    elsewhere = services.txns.elsewhere(transactional_id)
    if elsewhere is None:
        return services.txns.submit(transactional_id, command).map(refusals)
    question = Question(transactional_id, producer_id, epoch, wanted, verify_only=admission is not Admission.ADD)
    return services.coordination.parts.verification.ask(elsewhere, question).map(
        lambda codes: {where: _told(code, admission) for where, code in codes.items()}
    )


def admit_patiently(context: Context, ask: Callable[[], Later[Refusals]]) -> Later[Refusals]:
    """Asks again for a while: the markers of the producer's last transaction may be on their way still."""
    settings = context.settings
    backoff_s = settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS] / 1000
    until_ms = context.steady_ms() + settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS]
    loop = context.services.txns.loop
    outcome: Later[Refusals] = Later()

    def attempt() -> None:
        ask().then(judge)

    def judge(refusals: Refusals) -> None:
        if ErrorCode.CONCURRENT_TRANSACTIONS in refusals.values() and context.steady_ms() < until_ms:
            loop.call_later(backoff_s, attempt)
        else:
            outcome.set(refusals)

    attempt()
    return outcome


def submit_patiently(context: Context, transactional_id: str, command: Any) -> Later[Any]:
    """The coordinator's reply. The markers of the producer's last transaction may be on their way still: rather than
    have the client ask again after a pause of its own, which is long, the coordinator is asked again here."""
    settings = context.settings
    backoff_s = settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS] / 1000
    until_ms = context.steady_ms() + settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS]
    txns = context.services.txns
    outcome: Later[Any] = Later()

    def attempt() -> None:
        txns.submit(transactional_id, command).then(judge)

    def judge(reply: Any) -> None:
        concurrent = isinstance(reply, ApiError) and reply.code == ErrorCode.CONCURRENT_TRANSACTIONS
        if concurrent and context.steady_ms() < until_ms:
            txns.loop.call_later(backoff_s, attempt)
        else:
            outcome.set(reply)

    attempt()
    return outcome


def _told(code: ErrorCode, admission: Admission) -> ErrorCode:
    """As the client is told it."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and admission is Admission.VERIFY_FOR_OLD:
        return ErrorCode.INVALID_TXN_STATE
    return code
