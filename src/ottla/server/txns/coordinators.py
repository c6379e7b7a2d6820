"""The transaction coordinators: machines on `__transaction_state`, and how the parts of the node look to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.cluster.features import TRANSACTION_VERSION
from ottla.machine.keyed import types_of
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.names import TRANSACTION_STATE_TOPIC
from ottla.server.coordination.hosts import Coordinators
from ottla.server.loop.later import Answer, Later
from ottla.server.txns.deliveries import Deliveries
from ottla.txns.effects import WriteMarkers
from ottla.txns.machine import TransactionsMachine
from ottla.txns.view import TransactionsState, View
from ottla.wire.journal import transaction_state

if TYPE_CHECKING:
    from ottla.server.api.context import Services

TransactionCoordinators = Coordinators[TransactionsMachine]
T = TypeVar("T")


class NoProducerId(ApiError):
    """There is none at the moment; the controller is being asked for more."""


def _next_producer_id(services: Services) -> int:
    try:
        return services.channel.producer_ids.next_producer_id()
    except ApiError as error:
        raise NoProducerId(error.code, error.message) from error


def ask_with_ids(
    services: Services, key: str, command: Any, respond: Callable[[Any], T], refuse: Callable[[ApiError], T]
) -> Answer[T]:
    """`ask`, for commands that may need a new producer id: they wait until there is one."""
    outcome: Later[Any] = Later()

    def attempt(left: int) -> None:
        services.txns.submit(key, command).then(partial(judge, left))

    def judge(left: int, value: Any) -> None:
        if not isinstance(value, NoProducerId) or not left:
            outcome.set(value)
            return
        services.channel.producer_ids.ready().then(
            lambda error: attempt(left - 1) if error is None else outcome.set(error)
        )

    attempt(limits.PRODUCER_ID_ATTEMPTS_MAX)
    return outcome.map(lambda value: refuse(value) if isinstance(value, ApiError) else respond(value)).soonest()


def transaction_coordinators(loop: Any, services: Services) -> TransactionCoordinators:
    """The machines on `__transaction_state`."""
    configs = services.configs

    def make(_: int) -> TransactionsMachine:
        view = View(
            TransactionsState(),
            lambda: configs.broker,
            lambda: services.metadata.state.features.get(TRANSACTION_VERSION, 0),
            partial(_next_producer_id, services),
        )
        return TransactionsMachine(view)

    made: TransactionCoordinators = Coordinators(
        loop,
        services,
        TRANSACTION_STATE_TOPIC,
        types_of(transaction_state),
        make,
        lambda: limits.TRANSACTION_WRITE_MS_MAX,
    )
    made.on_effect(WriteMarkers, Deliveries(loop, services).write)
    return made
