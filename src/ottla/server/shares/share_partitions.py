"""Share partitions in use on this node, loaded from their stored state, and the sessions of their members.

A share partition is loaded when a member first fetches it and dropped when its group has no session here any more, when
its topic is deleted, or when another node has changed its stored state (then it is loaded anew). A change of state is
first stored (`stored_changes.py`), then applied, then answered.
"""

from __future__ import annotations

from functools import partial

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.share import GROUP_SHARE_MAX_SHARE_SESSIONS
from ottla.replica.partition import Partition
from ottla.server.dead_letters.dead_letters import DeadLetters
from ottla.server.fetch.share_sessions import Named, ShareSession, ShareSessions
from ottla.server.loop.later import Later, settled
from ottla.server.loop.runtime import Runtime
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.settings.configs import Configs
from ottla.server.shares.delivery_counts import GroupDeliveries
from ottla.server.shares.live_partition import LivePartition
from ottla.server.shares.share_rules import ShareRules, first_offset
from ottla.server.shares.share_states import ShareStates
from ottla.server.shares.stored_changes import StoredChanges, meaning
from ottla.server.storage.storage import Storage
from ottla.server.storage.time_searches import Search, Unfinished, search_here
from ottla.shares.partition.partition import SharePartition
from ottla.shares.partition.terms import Ack, Transition
from ottla.shares.state.batches import NO_OFFSET
from ottla.shares.state.commands import ReadState, StoredShareState
from ottla.shares.state.partition import SharePartitionId

# How long to wait before storing an expired lock again after a failure.
_RETRY_MS = 1_000


class SharePartitions:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        storage: Storage,
        metadata: MetadataHost,
        states: ShareStates,
        dead_letters: DeadLetters,
    ) -> None:
        self.rules = ShareRules(configs, metadata)
        self.sessions = ShareSessions(lambda: configs.broker[GROUP_SHARE_MAX_SHARE_SESSIONS], self._session_lost)
        self._runtime = runtime
        self._now_ms = runtime.now_ms
        self._partitions = storage.partitions
        self._looks = storage.looks
        self._notify = storage.waiters.notify
        self._notify_soon = storage.waiters.notify_soon
        self._metadata = metadata
        self._states = states
        self._changes = StoredChanges(runtime, states, dead_letters, outdated=self.drop, changed=self._notify)
        self._live: dict[SharePartitionId, LivePartition] = {}
        self.deliveries = GroupDeliveries()

    def look_soon(self, live: LivePartition) -> None:
        """Try the waiting fetches again in the next turn, because there is more to skip than one fetch should."""
        self._notify_soon(live)

    # --- finding and loading

    def live(self) -> tuple[LivePartition, ...]:
        """Return the live partitions of all groups."""
        return tuple(self._live.values())

    def led(self, id: SharePartitionId) -> Partition:
        """Return the partition if this node leads it; raise the errors of finding it, or NOT_LEADER_OR_FOLLOWER."""
        partition = self._partitions.find_by_id(id.topic_id, id.partition)
        partition.require_leader()
        return partition

    def get(self, id: SharePartitionId) -> LivePartition:
        """Return the live partition, perhaps still loading. Raises the errors of finding the partition."""
        partition = self.led(id)
        live = self._live.get(id)
        if live is not None and live.partition is partition:
            return live
        if live is not None:
            self.drop(live, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        live = self._live[id] = LivePartition(
            id,
            partition,
            self.rules,
            self.deliveries.of(id.group_id),
            self._runtime,
            expired=self._commit_or_retry,
            changed=self._notify,
        )
        command = ReadState(*id, leader_epoch=live.leader_epoch)
        self._states.submit(command).then(partial(self._loaded, live), partial(self._lost, live))
        return live

    def _loaded(self, live: LivePartition, found: StoredShareState | ApiError, search: Search | None = None) -> None:
        if self._live.get(live.id) is not live:
            live.error = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif isinstance(found, ApiError):
            live.error = meaning(found)
            del self._live[live.id]
        else:
            try:
                self._begin(live, found, search or search_here(self._looks))
            except Unfinished as unfinished:
                unfinished.go_on(self._looks).then(partial(self._loaded, live, found), partial(self._lost, live))
                return
            except ApiError as error:
                live.error = error
                del self._live[live.id]
        self._notify(live)

    def _lost(self, live: LivePartition) -> None:
        """End a load that failed without an answer; the reason is in the log."""
        self._loaded(live, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _begin(self, live: LivePartition, found: StoredShareState, search: Search) -> None:
        now_ms = self._now_ms()
        rules = live.rules
        live.state_epoch = found.state_epoch
        # A log that lost its end (a power failure, an operator) may end before offsets in the stored state.
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
            # Store the start, so that the group continues here even if no record is acknowledged before a failure.
            self._changes.store(live, Transition(0, ()), lambda _: None)

    def follow(self) -> None:
        """Drop share partitions whose topic was deleted or whose leader is another node."""
        for live in tuple(self._live.values()):
            try:
                if self.led(live.id) is not live.partition:
                    raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            except ApiError as error:
                gone = live.id.topic_id not in self._metadata.state.topic_by_id
                self.drop(live, ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) if gone else error)

    def drop(self, live: LivePartition, error: ApiError) -> None:
        """Drop a live partition; waiting fetches get the error."""
        if self._live.get(live.id) is live:
            del self._live[live.id]
        live.error = live.error or error
        live.close()
        self._notify(live)

    # --- changes

    def acknowledge(self, id: SharePartitionId, member_id: str, acks: list[Ack]) -> Later[ApiError | None]:
        """Apply acknowledgements; set to None when they are stored, else to the error, and then none of them is
        applied.
        """
        live = self._live.get(id)
        if live is None or live.state is None:
            return settled(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        now_ms = self._now_ms()
        try:
            transition = live.ready(now_ms).acknowledge(member_id, acks, now_ms)
        except ApiError as error:
            return settled(error)
        return self._changes.commit(live, transition)

    def end(self, session: ShareSession) -> dict[Named, Later[ApiError | None]]:
        """End a session at the member's request and release its records; the caller calls `closed` when
        that is done.
        """
        self.sessions.close(session)
        return self._release(session)

    def _release(self, session: ShareSession) -> dict[Named, Later[ApiError | None]]:
        """Release the records that the session's member has acquired in the session's partitions."""
        outcomes: dict[Named, Later[ApiError | None]] = {}
        now_ms = self._now_ms()
        for topic_id, index in session.partitions:
            live = self._live.get(SharePartitionId(session.group_id, topic_id, index))
            if live is not None and live.state is not None:
                transition = live.ready(now_ms).release(session.member_id, now_ms)
                if transition is None:
                    outcomes[topic_id, index] = settled(None)
                else:
                    outcomes[topic_id, index] = self._commit_or_retry(live, transition)
        return outcomes

    def closed(self, session: ShareSession) -> None:
        """Drop the partitions of a group without sessions here, to save memory and because other nodes may change their
        state.
        """
        if not self.sessions.has_group(session.group_id):
            for id, live in tuple(self._live.items()):
                if id.group_id == session.group_id:
                    self.drop(live, ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND))
            self.rules.forget(session.group_id)

    def _session_lost(self, session: ShareSession) -> None:
        self._release(session)
        self.closed(session)

    def _commit_or_retry(self, live: LivePartition, change: Transition) -> Later[ApiError | None]:
        """Store a change. If that fails, its records stay locked for a while and the change is tried again when the
        lock expires.
        """
        return self._changes.commit(live, change, retry_ms=self._now_ms() + _RETRY_MS)

    def bury(self, live: LivePartition) -> None:
        """Store which offsets a fetch found to have no records; if that fails, a later fetch finds them again."""
        change = live.state.buried() if live.state is not None else None
        if change is not None:
            self._changes.commit(live, change)

    def close(self) -> None:
        for live in self._live.values():
            live.close()
        self._live.clear()
