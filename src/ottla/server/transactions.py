"""The transaction coordinators: machines on `__transaction_state`, and how the parts of the node look to them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.cluster.features import TRANSACTION_VERSION
from ottla.machine.keyed import types_of
from ottla.model.names import TRANSACTION_STATE_TOPIC
from ottla.server.hosts import Coordinators
from ottla.server.markers import write_markers
from ottla.txns.effects import WriteMarkers
from ottla.txns.machine import TransactionsMachine
from ottla.txns.view import TransactionsState, View
from ottla.wire.journal import transaction_state

if TYPE_CHECKING:
    from ottla.server.context import Services

TransactionCoordinators = Coordinators[TransactionsMachine]


def transaction_coordinators(loop: Any, services: Services) -> TransactionCoordinators:
    """The machines on `__transaction_state`."""
    features = services.metadata.state.features
    configs = services.configs

    def make(_: int) -> TransactionsMachine:
        view = View(
            TransactionsState(),
            lambda: configs.broker,
            lambda: features.get(TRANSACTION_VERSION, 0),
            services.metadata.next_producer_id,
        )
        return TransactionsMachine(view)

    made: TransactionCoordinators = Coordinators(
        loop, services, TRANSACTION_STATE_TOPIC, types_of(transaction_state), make
    )
    made.on_effect(WriteMarkers, partial(write_markers, loop, services))
    return made
