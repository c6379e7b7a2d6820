"""Where the state of share partitions is kept: by the share coordinator here, or by that of another node.

Leaders of share partitions and group coordinators ask; each share partition may have another coordinator. What goes to
the same node for the same group goes together, one request at a time, and one change of a share partition at a time. A
coordinator that has moved, or is being loaded, is asked again for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.errors import error_code
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.loop.later import Later
from ottla.server.peers.peer_requests import Outbox, ask, give
from ottla.shares.state.batches import StateBatch
from ottla.shares.state.commands import DeleteState, InitializeState, ReadState, ReadSummary, State, Summary, WriteState
from ottla.shares.state.partition import NO_COUNT, NO_EPOCH, SharePartitionId
from ottla.wire.message import Request
from ottla.wire.messages.shares.delete_share_group_state import DeleteShareGroupStateRequest
from ottla.wire.messages.shares.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.messages.shares.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.messages.shares.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from ottla.wire.messages.shares.write_share_group_state import WriteShareGroupStateRequest

if TYPE_CHECKING:
    from ottla.server.api.context import Services

Command = ReadState | WriteState | InitializeState | DeleteState | ReadSummary

_AGAIN = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
)


class Form(NamedTuple):
    """How one kind of command travels: the request, its parts, and what the answer for one partition means."""

    request: type[Request]
    topic: type[Any]
    partition: Callable[[Any], Any]
    reply: Callable[[Any], Any]


class Asked(NamedTuple):
    """One command on its way."""

    command: Command
    later: Later[Any]

    @property
    def place(self) -> tuple[bytes, int]:
        return self.command.topic_id, self.command.partition


class To(NamedTuple):
    """What may travel together."""

    node_id: int
    group_id: str
    kind: type[Any]


class ShareStates:
    def __init__(self, loop: Any, services: Services) -> None:
        self._loop = loop
        self._services = services
        self._outbox: Outbox[To, Asked] = Outbox(self._send, lambda asked: asked.place)

    def submit(self, command: Command) -> Later[Any]:
        """The reply of the coordinator in charge; an ApiError arrives as a value."""
        id = SharePartitionId(command.group_id, command.topic_id, command.partition)
        key = id.coordinator_key
        if len(self._services.metadata.state.brokers) <= 1:
            return self._services.shares.submit(key, command)
        outcome: Later[Any] = Later()
        self._attempt(key, command, outcome, 1)
        return outcome

    def _attempt(self, key: str, command: Command, outcome: Later[Any], number: int) -> None:
        self._ask(key, command).then(partial(self._answered, key, command, outcome, number))

    def _answered(self, key: str, command: Command, outcome: Later[Any], number: int, value: Any) -> None:
        again = isinstance(value, ApiError) and value.code in _AGAIN
        if again and number < limits.SHARE_STATE_ATTEMPTS_MAX:
            pause_ms = min(limits.SHARE_STATE_RETRY_MS << (number - 1), limits.SHARE_STATE_RETRY_MS_MAX)
            self._loop.call_later(pause_ms / 1000, self._attempt, key, command, outcome, number + 1)
        else:
            outcome.set(value)

    def _ask(self, key: str, command: Command) -> Later[Any]:
        shares = self._services.shares
        later: Later[Any] = Later()
        try:
            leader = shares.leader_of(key)
        except ApiError as error:
            later.set(error)
            return later
        if leader == self._services.node_id:
            return shares.submit(key, command)
        self._outbox.put(To(leader, command.group_id, type(command)), Asked(command, later))
        return later

    def _send(self, to: To, items: list[Asked]) -> Later[None]:
        form = _FORMS[to.kind]
        topics: dict[bytes, list[Any]] = {}
        for each in items:
            topics.setdefault(each.command.topic_id, []).append(form.partition(each.command))
        request = form.request(
            group_id=to.group_id,
            topics=[form.topic(topic_id=topic_id, partitions=parts) for topic_id, parts in topics.items()],
        )
        return ask(self._services, to.node_id, request, "shares").map(partial(_settle, items, form.reply))


def _settle(items: Sequence[Asked], reply: Callable[[Any], Any], answer: Any) -> None:
    if isinstance(answer, ApiError):
        for each in items:
            give(each.later, answer)
        return
    found = {(topic.topic_id, each.partition): each for topic in answer.results for each in topic.partitions}
    for asked in items:
        result = found.get(asked.place)
        if result is None:
            give(asked.later, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the share coordinator left it out"))
        elif result.error_code:
            give(asked.later, ApiError(error_code(result.error_code), result.error_message))
        else:
            give(asked.later, reply(result))


def _nothing(_: Any) -> None:
    """All that these replies say is that it is done."""


def _batches(found: Iterable[Any]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in found
    )


def _write(command: WriteState) -> Any:
    form = WriteShareGroupStateRequest.WriteStateData.PartitionData
    return form(
        partition=command.partition,
        state_epoch=command.state_epoch,
        leader_epoch=command.leader_epoch,
        start_offset=command.start_offset,
        delivery_complete_count=command.delivery_complete_count,
        state_batches=[form.StateBatch(**batch._asdict()) for batch in command.batches],
    )


_FORMS: dict[type[Any], Form] = {
    ReadState: Form(
        ReadShareGroupStateRequest,
        ReadShareGroupStateRequest.ReadStateData,
        lambda command: ReadShareGroupStateRequest.ReadStateData.PartitionData(
            partition=command.partition, leader_epoch=command.leader_epoch
        ),
        # How many records are done is counted anew from the batches.
        lambda result: State(result.state_epoch, result.start_offset, NO_COUNT, _batches(result.state_batches)),
    ),
    WriteState: Form(WriteShareGroupStateRequest, WriteShareGroupStateRequest.WriteStateData, _write, _nothing),
    InitializeState: Form(
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateRequest.InitializeStateData,
        lambda command: InitializeShareGroupStateRequest.InitializeStateData.PartitionData(
            partition=command.partition, state_epoch=command.state_epoch, start_offset=command.start_offset
        ),
        _nothing,
    ),
    DeleteState: Form(
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateRequest.DeleteStateData,
        lambda command: DeleteShareGroupStateRequest.DeleteStateData.PartitionData(partition=command.partition),
        _nothing,
    ),
    ReadSummary: Form(
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
        lambda command: ReadShareGroupStateSummaryRequest.ReadStateSummaryData.PartitionData(
            partition=command.partition, leader_epoch=NO_EPOCH
        ),
        lambda result: Summary(
            result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count
        ),
    ),
}
