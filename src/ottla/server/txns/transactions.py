"""Transactions: the transaction coordinators of a node, and the gate for transactional batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ottla.cluster.features import TRANSACTION_VERSION
from ottla.groups.view import GroupsView
from ottla.machine.keyed import types_of
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerId
from ottla.model.names import TRANSACTION_STATE_TOPIC
from ottla.server.coordination.host import Host
from ottla.server.coordination.hosts import Coordinators
from ottla.server.coordination.runtime import CoordinatorRuntime
from ottla.server.loop.current_span import OpenSpan, current_span
from ottla.server.loop.later import Answer, Later
from ottla.server.loop.retrying import repeating, retrying
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.quorum.producer_ids import ProducerIds
from ottla.server.settings.configs import Configs
from ottla.server.txns.add_partitions_requests import AddPartitionsRequests
from ottla.server.txns.deliveries import Deliveries
from ottla.server.txns.gate import TransactionGate, patience
from ottla.server.txns.marker_writer import MarkerWriter
from ottla.server.txns.markers import Markers
from ottla.txns.effects import WriteMarkers
from ottla.txns.machine import TransactionsMachine, TxnCommand
from ottla.txns.view import TransactionsState, TxnsView
from ottla.wire.journal import transaction_state

T = TypeVar("T")
ReplyT = TypeVar("ReplyT")


class NoProducerId(ApiError):
    """No producer id is available at the moment; the controller is being asked for more."""


class Transactions:
    """`offsets_host` finds the group coordinator on a partition of `__consumer_offsets`.

    - `coordinators`: the machines on `__transaction_state`;
    - `gate`: checks whether a batch may join a transaction;
    - `marker_writer`: appends markers to partitions that are led here.
    """

    def __init__(
        self,
        coordinating: CoordinatorRuntime,
        configs: Configs,
        producer_ids: ProducerIds,
        requests: PeerRequests,
        offsets_host: Callable[[int], Host[GroupsView] | None],
    ) -> None:
        runtime, metadata = coordinating.runtime, coordinating.metadata
        self._runtime = runtime
        self._configs = configs
        self._metadata = metadata
        self._producer_ids = producer_ids
        self.coordinators: Coordinators[TxnsView] = coordinating.coordinators(
            TRANSACTION_STATE_TOPIC,
            types_of(transaction_state),
            self._make_machine,
            lambda: limits.TRANSACTION_WRITE_MS_MAX,
        )
        self.submit = self.coordinators.submit
        self.gate = TransactionGate(runtime, configs, metadata, self.coordinators, AddPartitionsRequests(requests))
        self.marker_writer = MarkerWriter(coordinating.storage, runtime.now_ms, offsets_host, self.gate.marker_written)
        deliveries = Deliveries(runtime, Markers(metadata, self.marker_writer, requests))
        self._deliveries = deliveries
        self._traced_ends: dict[str, OpenSpan] = {}  # of requests that end transactions, by transactional id
        self.coordinators.on_effect(WriteMarkers, self._write_markers)

    def _write_markers(self, effect: WriteMarkers, host: Host[TxnsView]) -> None:
        span = self._traced_ends.pop(effect.transactional_id, None) if self._traced_ends else None
        self._deliveries.write(effect, host, None if span is None else span.child("write markers"))

    def _note_end(self, transactional_id: str) -> None:
        """Note the span of the present request, if it has one, for markers that may follow from it."""
        span = current_span()
        if span is not None and len(self._traced_ends) < limits.TRACED_TRANSACTIONS_MAX:
            self._traced_ends[transactional_id] = span
        elif self._traced_ends:
            self._traced_ends.pop(transactional_id, None)

    def _make_machine(self, _: int) -> TransactionsMachine:
        view = TxnsView(
            TransactionsState(),
            lambda: self._configs.broker,
            lambda: self._metadata.state.features.get(TRANSACTION_VERSION, 0),
            self._next_producer_id,
        )
        return TransactionsMachine(view)

    def _next_producer_id(self) -> ProducerId:
        try:
            return self._producer_ids.next_producer_id()
        except ApiError as error:
            raise NoProducerId(error.code, error.message) from error

    def submit_patiently(self, transactional_id: str, command: TxnCommand[ReplyT]) -> Later[ReplyT | ApiError]:
        """Return the coordinator's reply. The command is repeated while the markers of the producer's last transaction
        are being written: a client that is told to retry would pause for longer.
        """
        return retrying(
            self._runtime.loop,
            partial(self.submit, transactional_id, command),
            lambda reply: isinstance(reply, ApiError) and reply.code == ErrorCode.CONCURRENT_TRANSACTIONS,
            patience(self._runtime, self._configs),
        )

    def ask_with_ids(
        self,
        transactional_id: str,
        command: TxnCommand[ReplyT],
        respond: Callable[[ReplyT], T],
        refuse: Callable[[ApiError], T],
    ) -> Answer[T]:
        """Do the same as `Coordinators.ask` for commands that may need a new producer id: they wait until one is
        available.
        """
        self._note_end(transactional_id)
        attempts = iter(range(limits.PRODUCER_ID_ATTEMPTS_MAX))

        def until_ready(reply: ReplyT | ApiError) -> Later[ApiError | None] | None:
            is_left = isinstance(reply, NoProducerId) and next(attempts, None) is not None
            return self._producer_ids.ready() if is_left else None

        outcome = repeating(partial(self.submit, transactional_id, command), until_ready)
        return outcome.map(lambda value: refuse(value) if isinstance(value, ApiError) else respond(value)).soonest()
