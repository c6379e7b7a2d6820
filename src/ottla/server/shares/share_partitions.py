"""Share partitions: the live ones of this node, loaded from their stored state, with their locks' timers.

A share partition is loaded when a member first asks for it and dropped when its group has no session here any more,
when its topic goes, or when somebody else has changed its stored state (then it is loaded anew). A change of state is
stored first (and dead letters before that), then it counts, then it is answered.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.machine.kit import ClockSteps
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.share import GROUP_SHARE_MAX_SHARE_SESSIONS
from ottla.replica.partition import Partition
from ottla.server.api.time_searches import Search, Unfinished, search_here
from ottla.server.dead_letters.dead_letters import DeadLetters
from ottla.server.fetch.share_sessions import Named, ShareSession, ShareSessions
from ottla.server.loop.later import Later
from ottla.server.shares.group_settings import GroupRules, ShareRules, first_offset
from ottla.shares.partition.partition import SharePartition
from ottla.shares.partition.terms import Ack, Rules, Transition
from ottla.shares.state.batches import NO_OFFSET
from ottla.shares.state.commands import ReadState, State, WriteState
from ottla.shares.state.partition import SharePartitionId

if TYPE_CHECKING:
    from ottla.server.api.context import Services

log = logging.getLogger(__name__)

# What could not be stored when a lock ended is tried again after this long.
_RETRY_MS = 1_000

# What the share coordinator's refusals mean to a consumer. All others mean that something is wrong with the servers, as
# when the group's state was never initialised (INVALID_REQUEST): the consumer asked for nothing that is invalid.
_MEANINGS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


# After these the stored state is not the one that was loaded: it is loaded anew when it is next asked for.
_FORGOTTEN = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_REQUEST,
)


class LivePartition:
    """One share partition. `state` is None until it is loaded; `error` says why it never will be."""

    def __init__(self, owner: SharePartitions, id: SharePartitionId, partition: Partition) -> None:
        self.id = id
        self.partition = partition
        # Under which the state was read. Another leader may have read it since, even if this one leads again by now:
        # then what is known here is out of date, and the share coordinator refuses it.
        self.leader_epoch = partition.leader_epoch
        self.state: SharePartition | None = None
        self.error: ApiError | None = None
        self.state_epoch = 0
        self._owner = owner
        self._timer: Any = None
        self._timer_ms = 0
        self._clock_steps = ClockSteps(owner.services.clocks.moment())

    @property
    def rules(self) -> GroupRules:
        return self._owner.rules.of(self.id.group_id)

    def ready(self, now_ms: int) -> SharePartition:
        """Its state, under the rules and with the log start of now."""
        state = self.state
        assert state is not None, "it is loaded"
        by_ms = self._clock_steps.since(self._owner.services.clocks.moment())
        if by_ms:
            self._timer_ms += by_ms
            state.clock_set(by_ms)
        rules = self.rules.records
        if rules is not state.rules:
            again = rules.inspects and (rules.key_ordered, rules.delayed) != (
                state.rules.key_ordered,
                state.rules.delayed,
            )
            state.rules = rules
            if again:
                state.look_again()
        state.advance(self.partition.log.log_start_offset)
        return state

    # --- timers

    def wake_at(self, deadline_ms: int | None) -> None:
        """At the latest then locks and delays are looked at."""
        if deadline_ms is None:
            return
        # A timer that is overdue and still runs says that the clock was set forward: it is too late for anybody.
        if self._timer is not None and self._owner.services.now_ms() < self._timer_ms <= deadline_ms:
            return
        self.close()
        self._timer_ms = deadline_ms
        self._timer = self._owner.call_at(deadline_ms, self._wake)

    def _wake(self) -> None:
        self._timer = None
        now_ms = self._owner.services.now_ms()
        if self.state is None or self._owner.find(self.id) is not self:
            return
        state = self.ready(now_ms)
        over = state.expire(now_ms)
        if over is not None:
            self._owner.commit(self, over, retry_ms=now_ms + _RETRY_MS)
        self.arm(now_ms)
        self._owner.services.waiters.notify(self)

    def arm_after(self, rules: Rules, now_ms: int) -> None:
        """After a change: new locks end after old ones, so only pauses can make the timer's time too late."""
        if self._timer is None or rules.backoff_ms > 0 or rules.inspects:
            self.arm(now_ms)

    def arm(self, now_ms: int) -> None:
        """The timer for what is to come."""
        if self.state is not None:
            self.wake_at(self.state.next_lock_ms())
            self.wake_at(self.state.next_due_ms(now_ms))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class SharePartitions:
    def __init__(self, loop: Any, services: Services, dead_letters: DeadLetters) -> None:
        self.services = services
        self.rules = ShareRules(services)
        self.sessions = ShareSessions(
            lambda: services.configs.broker[GROUP_SHARE_MAX_SHARE_SESSIONS], self._session_lost
        )
        self._loop = loop
        self._live: dict[SharePartitionId, LivePartition] = {}
        self._dead_letters = dead_letters

    def call_at(self, deadline_ms: int, callback: Any) -> Any:
        return self._loop.call_later(max(0, deadline_ms - self.services.now_ms()) / 1000, callback)

    def look_soon(self, live: LivePartition) -> None:
        """There is more to skip than one fetch should; whoever waits looks again in the next turn."""
        self._loop.call_soon(self.services.waiters.notify, live)

    # --- finding and loading

    def find(self, id: SharePartitionId) -> LivePartition | None:
        return self._live.get(id)

    def get(self, id: SharePartitionId) -> LivePartition:
        """The live partition, perhaps still loading. Raises what finding the partition raises."""
        partition = led(self.services, id)
        live = self._live.get(id)
        if live is not None and live.partition is partition:
            return live
        if live is not None:
            self.drop(live, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        live = self._live[id] = LivePartition(self, id, partition)
        command = ReadState(*id, leader_epoch=live.leader_epoch)
        self.services.share_states.submit(command).then(partial(self._loaded, live))
        return live

    def _loaded(self, live: LivePartition, found: State | ApiError, search: Search | None = None) -> None:
        if self._live.get(live.id) is not live:
            live.error = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif isinstance(found, ApiError):
            live.error = _meaning(found)
            del self._live[live.id]
        else:
            try:
                self._begin(live, found, search or search_here(self.services))
            except Unfinished as unfinished:
                unfinished.go_on(self.services).then(partial(self._loaded, live, found))
                return
            except ApiError as error:
                live.error = error
                del self._live[live.id]
        self.services.waiters.notify(live)

    def _begin(self, live: LivePartition, found: State, search: Search) -> None:
        now_ms = self.services.now_ms()
        rules = live.rules
        live.state_epoch = found.state_epoch
        # A log that lost its end (power, an operator) may be shorter than what was dealt with of it.
        end = live.partition.log.next_offset
        batches = [
            batch._replace(last_offset=min(batch.last_offset, end - 1))
            for batch in found.batches
            if batch.first_offset < end
        ]
        start = min(found.start_offset, end)
        if start == NO_OFFSET:
            start = first_offset(live.partition, rules.reset, now_ms, search)
        live.state = SharePartition.loaded(start, batches, rules.records, now_ms)
        live.ready(now_ms)
        live.arm(now_ms)
        if found.start_offset == NO_OFFSET and rules.reset != "earliest":
            # So that the group goes on from here also if it dies before it acknowledges anything.
            self._store(live, Transition(0, ()), lambda _: None)

    def follow(self) -> None:
        """Topics may be gone, or led by others: so are their share partitions."""
        for live in tuple(self._live.values()):
            try:
                if led(self.services, live.id) is not live.partition:
                    raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            except ApiError as error:
                gone = live.id.topic_id not in self.services.metadata.state.topic_by_id
                self.drop(live, ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) if gone else error)

    def drop(self, live: LivePartition, error: ApiError) -> None:
        """Nothing is known of it any more; who waits for it learns why."""
        if self._live.get(live.id) is live:
            del self._live[live.id]
        live.error = live.error or error
        live.close()
        self.services.waiters.notify(live)

    # --- changes

    def acknowledge(self, id: SharePartitionId, member_id: str, acks: list[Ack]) -> Later[ApiError | None]:
        """None when it is stored, else why nothing of it counts."""
        live = self._live.get(id)
        if live is None or live.state is None:
            return _done(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        now_ms = self.services.now_ms()
        try:
            transition = live.ready(now_ms).acknowledge(member_id, acks, now_ms)
        except ApiError as error:
            return _done(error)
        return self.commit(live, transition)

    def release(self, session: ShareSession, named: Iterable[Named]) -> dict[Named, Later[ApiError | None]]:
        """Gives back what the session's member has of these partitions."""
        outcomes: dict[Named, Later[ApiError | None]] = {}
        now_ms = self.services.now_ms()
        for topic_id, index in named:
            live = self._live.get(SharePartitionId(session.group_id, topic_id, index))
            if live is not None and live.state is not None:
                transition = live.ready(now_ms).release(session.member_id, now_ms)
                done = _done(None) if transition is None else self.commit(live, transition, retry_ms=now_ms + _RETRY_MS)
                outcomes[topic_id, index] = done
        return outcomes

    def closed(self, session: ShareSession) -> None:
        """A group without sessions is not worth keeping in memory, and others may now change its stored state."""
        if not self.sessions.has_group(session.group_id):
            for id, live in tuple(self._live.items()):
                if id.group_id == session.group_id:
                    self.drop(live, ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND))
            self.rules.forget(session.group_id)

    def _session_lost(self, session: ShareSession) -> None:
        self.release(session, session.partitions)
        self.closed(session)

    def commit(self, live: LivePartition, change: Transition, *, retry_ms: int | None = None) -> Later[ApiError | None]:
        """Stores a change, then makes it count; with `retry_ms` its records are locked until then if that fails."""
        outcome: Later[ApiError | None] = Later()
        if not change.batches:
            live.arm(self.services.now_ms())
            outcome.set(None)
            return outcome
        done = partial(self._stored, live, change, retry_ms, outcome)
        topic = live.rules.dlq_topic if change.dead else ""
        if topic:
            self._dead_letters.write(topic, live.id.group_id, live.partition, change.dead).then(
                lambda error: self._store(live, change, done) if error is None else done(error, lost=False)
            )
        else:
            self._store(live, change, done)
        return outcome

    def _store(self, live: LivePartition, change: Transition, done: Any) -> None:
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
        self.services.share_states.submit(command).then(done)

    def _stored(
        self,
        live: LivePartition,
        change: Transition,
        retry_ms: int | None,
        outcome: Later[ApiError | None],
        error: ApiError | None,
        *,
        lost: bool = True,
    ) -> None:
        """`lost`: an error may mean that the stored state is another one by now."""
        state = live.state
        assert state is not None, "it had something to change"
        now_ms = self.services.now_ms()
        if error is None:
            state.settle(change.token)
        else:
            log.info("%s: a change of the share group's state was not stored: %s", live.partition.name, error)
            state.restore(change.token, until_ms=retry_ms)
            meaning = _meaning(error) if lost else error
            if lost and error.code in _FORGOTTEN:
                self.drop(live, meaning)
            error = meaning
        if self._live.get(live.id) is live:
            live.arm_after(state.rules, now_ms)
            self.services.waiters.notify(live)
        outcome.set(error)

    def bury(self, live: LivePartition) -> None:
        """Stores what a fetch found to hold no records; if that fails it is found again."""
        change = live.state.buried() if live.state is not None else None
        if change is not None:
            self.commit(live, change)

    def close(self) -> None:
        for live in self._live.values():
            live.close()
        self._live.clear()


def led(services: Services, id: SharePartitionId) -> Partition:
    """The partition, which this node leads. Raises what finding it raises, NOT_LEADER_OR_FOLLOWER where it does not."""
    partition = services.partitions.find_by_id(id.topic_id, id.partition)
    partition.require_leader()
    return partition


def _done(error: ApiError | None) -> Later[ApiError | None]:
    outcome: Later[ApiError | None] = Later()
    outcome.set(error)
    return outcome


def _meaning(error: ApiError) -> ApiError:
    return ApiError(_MEANINGS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.message)
