"""StoredChanges: stores a change of a share partition's state (and its dead letters before that), then applies it.

If the share coordinator refuses the change, it is undone; the refusal may mean that the stored state has changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ottla.model.errors import ApiError, ErrorCode
from ottla.server.dead_letters.dead_letters import DeadLetters
from ottla.server.loop.later import Later, settled
from ottla.server.loop.runtime import Runtime
from ottla.server.shares.live_partition import LivePartition
from ottla.server.shares.share_states import ShareStates
from ottla.shares.partition.terms import Transition
from ottla.shares.state.commands import WriteState

log = logging.getLogger(__name__)

# The errors for a consumer, by the share coordinator's refusal. Any other refusal is a fault of the servers, such as a
# group state that was never initialised (INVALID_REQUEST): the consumer's request was valid.
_MEANINGS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


# After these errors the stored state differs from the loaded one: it is loaded anew at the next fetch.
_FORGOTTEN = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_REQUEST,
)


def meaning(error: ApiError) -> ApiError:
    """Return the error for a consumer, given a refusal of the share coordinator."""
    return ApiError(_MEANINGS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.message)


class _Pending(NamedTuple):
    """A change that is being stored."""

    live: LivePartition
    change: Transition
    retry_ms: int | None
    outcome: Later[ApiError | None]


class StoredChanges:
    """`outdated(partition, error)` is called with a partition whose stored state was changed by another node,
    `changed(partition)` with one in which a change was applied or undone.
    """

    def __init__(
        self,
        runtime: Runtime,
        states: ShareStates,
        dead_letters: DeadLetters,
        *,
        outdated: Callable[[LivePartition, ApiError], None],
        changed: Callable[[LivePartition], None],
    ) -> None:
        self._now_ms = runtime.now_ms
        self._states = states
        self._dead_letters = dead_letters
        self._outdated = outdated
        self._changed = changed

    def commit(self, live: LivePartition, change: Transition, *, retry_ms: int | None = None) -> Later[ApiError | None]:
        """Store a change, then apply it; if storing fails, its records stay locked until `retry_ms`, if given."""
        if not change.batches:
            live.arm(self._now_ms())
            return settled(None)
        outcome: Later[ApiError | None] = Later()
        pending = _Pending(live, change, retry_ms, outcome)
        topic = live.rules.dlq_topic if change.dead else ""
        if topic:
            self._dead_letters.write(topic, live.id.group_id, live.partition, change.dead).then(
                partial(self._buried, pending), lambda: self._buried(pending, _failure())
            )
        else:
            self.store(live, change, partial(self._stored, pending))
        return outcome

    def store(self, live: LivePartition, change: Transition, done: Callable[[ApiError | None], None]) -> None:
        """Have the share coordinator store a change; `done` is called with the error, or None."""
        state = live.state
        assert state is not None, "it had something to change"
        command = WriteState(
            *live.id,
            state_epoch=live.state_epoch,
            leader_epoch=live.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.done,
            batches=change.batches,
        )
        self._states.submit(command).then(done, lambda: done(_failure()))

    def _buried(self, pending: _Pending, error: ApiError | None) -> None:
        if error is not None:
            self._undo(pending, error)
            pending.outcome.set(error)
        else:
            self.store(pending.live, pending.change, partial(self._stored, pending))

    def _stored(self, pending: _Pending, error: ApiError | None) -> None:
        live = pending.live
        if error is not None:
            told = meaning(error)
            self._undo(pending, error, told if error.code in _FORGOTTEN else None)
            pending.outcome.set(told)
            return
        assert live.state is not None, "it had something to change"
        live.state.settle(pending.change.token)
        live.deliveries.was_stored(pending.change)
        self._settled(live)
        pending.outcome.set(None)

    def _undo(self, pending: _Pending, error: ApiError, outdated: ApiError | None = None) -> None:
        live = pending.live
        log.info("%s: a change of the share group's state was not stored: %s", live.partition.name, error)
        assert live.state is not None, "it had something to change"
        live.state.restore(pending.change.token, until_ms=pending.retry_ms)
        if outdated is not None:
            self._outdated(live, outdated)
        self._settled(live)

    def _settled(self, live: LivePartition) -> None:
        if not live.closed:
            assert live.state is not None, "it had something to change"
            live.arm_after(live.state.rules, self._now_ms())
            self._changed(live)


def _failure() -> ApiError:
    """Return the error of a change whose storing failed without an answer; the reason is in the log."""
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
