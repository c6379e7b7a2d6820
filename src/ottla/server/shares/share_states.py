"""Access to the stored state of share partitions, at the share coordinator of this or another node.

Leaders of share partitions and group coordinators use it; each share partition may have another coordinator. Commands
for the same node and group are sent together, one request at a time, and one change of a share partition at a time. A
coordinator that has moved, or is being loaded, is asked again for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from ottla.client.errors import error_code
from ottla.machine.keyed import Entry
from ottla.machine.kit import Command
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_LEADER_EPOCH
from ottla.server.coordination.runtime import CoordinatorRuntime
from ottla.server.loop.later import Later, settled
from ottla.server.loop.retrying import growing_pauses, retrying
from ottla.server.peers.peer_requests import PeerQuestions, PeerRequests
from ottla.server.shares.coordinators import ShareCoordinators
from ottla.shares.state.batches import StateBatch
from ottla.shares.state.commands import (
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    StoredShareState,
    Summary,
    WriteState,
)
from ottla.shares.state.partition import NO_COUNT, SharePartitionId
from ottla.shares.state.view import ShareStatesView
from ottla.wire.message import Request, Struct
from ottla.wire.messages.shares.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from ottla.wire.messages.shares.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from ottla.wire.messages.shares.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from ottla.wire.messages.shares.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from ottla.wire.messages.shares.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse

ReplyT = TypeVar("ReplyT")
ReplyT_co = TypeVar("ReplyT_co", covariant=True)
StateResponse: TypeAlias = (
    ReadShareGroupStateResponse
    | WriteShareGroupStateResponse
    | InitializeShareGroupStateResponse
    | DeleteShareGroupStateResponse
    | ReadShareGroupStateSummaryResponse
)

_StoredBatch: TypeAlias = ReadShareGroupStateResponse.ReadStateResult.PartitionResult.StateBatch
_AGAIN = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
)


class StateCommand(Command[ShareStatesView, Entry, ReplyT_co], Protocol[ReplyT_co]):
    """A command about one share partition, with the type of its reply."""

    @property
    def group_id(self) -> str: ...

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partition(self) -> int: ...


class StateRequestForm(NamedTuple):
    """How one kind of command is sent: the request, its parts, and how to read the answer for one partition."""

    request: Callable[..., Request[StateResponse]]
    topic: Callable[..., Struct]
    partition: Callable[[Any], Struct]  # takes a command of this kind
    reply: Callable[[Any], object]  # takes the result for one partition in the response


class StateRequestKey(NamedTuple):
    """Commands with the same key are sent in one request."""

    node_id: int
    group_id: str
    kind: type


class ShareStates:
    def __init__(
        self, coordinating: CoordinatorRuntime, coordinators: ShareCoordinators, requests: PeerRequests
    ) -> None:
        self._loop = coordinating.runtime.loop
        self._metadata = coordinating.metadata
        self._coordinators = coordinators
        self._requests = _StateRequests(requests)

    def submit(self, command: StateCommand[ReplyT]) -> Later[ReplyT | ApiError]:
        """Return the reply of the share coordinator; an ApiError is set as a value."""
        key = SharePartitionId(command.group_id, command.topic_id, command.partition).coordinator_key
        if len(self._metadata.state.brokers) <= 1:
            return self._coordinators.submit(key, command)
        pauses_ms = growing_pauses(
            limits.SHARE_STATE_RETRY_MS, limits.SHARE_STATE_RETRY_MS_MAX, limits.SHARE_STATE_ATTEMPTS_MAX - 1
        )
        return retrying(self._loop, partial(self._ask, key, command), _is_temporary, pauses_ms)

    def _ask(self, key: str, command: StateCommand[ReplyT]) -> Later[ReplyT | ApiError]:
        shares = self._coordinators
        try:
            leader = shares.leader_of(key)
        except ApiError as error:
            return settled(error)
        if leader == self._metadata.node_id:
            return shares.submit(key, command)
        asked = self._requests.ask(StateRequestKey(leader, command.group_id, type(command)), command)
        return cast("Later[ReplyT | ApiError]", asked)  # its form makes a reply of this type


def _is_temporary(reply: object) -> bool:
    return isinstance(reply, ApiError) and reply.code in _AGAIN


class _StateRequests(PeerQuestions[StateRequestKey, StateCommand[object], StateResponse, object]):
    """Commands to share coordinators of other nodes; those of one kind for one group are sent together."""

    purpose = "shares"

    def node_of(self, key: StateRequestKey) -> int:
        return key.node_id

    def identity(self, question: StateCommand[object]) -> tuple[bytes, int]:
        return question.topic_id, question.partition

    def request(self, key: StateRequestKey, questions: list[StateCommand[object]]) -> Request[StateResponse]:
        form = _FORMS[key.kind]
        topics: dict[bytes, list[Struct]] = {}
        for command in questions:
            topics.setdefault(command.topic_id, []).append(form.partition(command))
        return form.request(
            group_id=key.group_id,
            topics=[form.topic(topic_id=topic_id, partitions=parts) for topic_id, parts in topics.items()],
        )

    def answers(self, key: StateRequestKey, response: StateResponse) -> dict[Hashable, object]:
        reply = _FORMS[key.kind].reply
        return {
            (topic.topic_id, each.partition): ApiError(error_code(each.error_code), each.error_message)
            if each.error_code
            else reply(each)
            for topic in response.results
            for each in topic.partitions
        }

    def refused(self, question: StateCommand[object], error: ApiError) -> ApiError:
        return error


def _nothing(_: object) -> None:
    """Ignore the contents of a reply that only reports success."""


def _batches(found: Iterable[_StoredBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in found
    )


def _write(command: WriteState) -> WriteShareGroupStateRequest.WriteStateData.PartitionData:
    form = WriteShareGroupStateRequest.WriteStateData.PartitionData
    return form(
        partition=command.partition,
        state_epoch=command.state_epoch,
        leader_epoch=command.leader_epoch,
        start_offset=command.start_offset,
        delivery_complete_count=command.delivery_complete_count,
        state_batches=[form.StateBatch(**batch._asdict()) for batch in command.batches],
    )


_FORMS: dict[type, StateRequestForm] = {
    ReadState: StateRequestForm(
        ReadShareGroupStateRequest,
        ReadShareGroupStateRequest.ReadStateData,
        lambda command: ReadShareGroupStateRequest.ReadStateData.PartitionData(
            partition=command.partition, leader_epoch=command.leader_epoch
        ),
        # The number of completed records is computed from the batches.
        lambda result: StoredShareState(
            result.state_epoch, result.start_offset, NO_COUNT, _batches(result.state_batches)
        ),
    ),
    WriteState: StateRequestForm(
        WriteShareGroupStateRequest, WriteShareGroupStateRequest.WriteStateData, _write, _nothing
    ),
    InitializeState: StateRequestForm(
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateRequest.InitializeStateData,
        lambda command: InitializeShareGroupStateRequest.InitializeStateData.PartitionData(
            partition=command.partition, state_epoch=command.state_epoch, start_offset=command.start_offset
        ),
        _nothing,
    ),
    DeleteState: StateRequestForm(
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateRequest.DeleteStateData,
        lambda command: DeleteShareGroupStateRequest.DeleteStateData.PartitionData(partition=command.partition),
        _nothing,
    ),
    ReadSummary: StateRequestForm(
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
        lambda command: ReadShareGroupStateSummaryRequest.ReadStateSummaryData.PartitionData(
            partition=command.partition, leader_epoch=NO_LEADER_EPOCH
        ),
        lambda result: Summary(
            result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count
        ),
    ),
}
