"""Partition: one replica of a partition over its log, as leader or follower: high watermark, epochs, readable range.
The table of roles and events is in `replica/__init__.py`.

Rules:
- The controller's terms decide the role (`lead`, `follow`). Only the leader takes producers' records; it notes how far
  its followers are (`isr`) and moves the high watermark as they fetch. If it is the only replica (`alone`) the high
  watermark follows the log end at once. If records must be synced before they count (`durable`), the leader's own end
  is the synced one, and a follower fetches only from a synced end (`fetch_offset`).
- A follower appends the leader's bytes unchanged, takes over the leader's watermarks, and truncates its log where it
  diverges from the leader's. Its high watermark goes back only with such a truncation.
- `last_stable_offset` <= `high_watermark` <= `log.next_offset`, always. Consumers read below the high watermark, with
  READ_COMMITTED below the last stable offset; followers read all that is written (`log.written_offset`).
- If a request names a leader epoch, an older one raises FENCED_LEADER_EPOCH, a newer one UNKNOWN_LEADER_EPOCH.
- While the disk is slow, appended records wait to be written (`log.unwritten`): until they are `written` they do not
  count, and neither consumers nor followers see them. If the write fails, they are cut off (`write_failed`).
- A failed append leaves the log as it was. After a failed sync nobody knows what is on disk, so a sole replica cuts off
  everything above the high watermark (`sync_failed`). With followers it does not, as they may have these records and no
  others may take their place in this epoch: its directory goes offline and another node leads.
"""

from __future__ import annotations

from ottla.log.config import LogConfig
from ottla.log.cut import ProducersThen
from ottla.log.files.disk import StorageError
from ottla.log.log import Appended, Log, Origin
from ottla.log.look import Look
from ottla.log.state import LogState
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_LEADER_EPOCH, NO_PARTITION_EPOCH, BrokerEpoch, LeaderEpoch
from ottla.replica.isr import AWAIT_METADATA, CERTAINLY_NOT_DONE, FollowerState, InSync, Pulse
from ottla.replica.neighbours import Neighbours
from ottla.replica.reading import READ_COMMITTED, READ_UNCOMMITTED, PartitionFetch, Readable
from ottla.replica.terms import NO_LEADER, Proposal, Terms, sole

__all__ = ["READ_COMMITTED", "READ_UNCOMMITTED", "Partition", "PartitionFetch"]

ACKS_ALL = -1


class Partition(Readable):
    __slots__ = (
        "alone",
        "counts_at_once",
        "cuts",
        "durable",
        "in_sync",
        "leader_id",
        "neighbours",
        "node_id",
        "partition_epoch",
        "told_high_watermark",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        log: Log,
        *,
        neighbours: Neighbours[Partition],
        node_id: int = 0,
        leader_epoch: LeaderEpoch | None = None,
        high_watermark: int | None = None,
    ) -> None:
        """Lead as the only replica if a `leader_epoch` is given; `high_watermark` is the checkpointed one."""
        super().__init__(topic, index, log)
        self.node_id = node_id
        self.neighbours = neighbours
        self.leader_id = NO_LEADER
        self.partition_epoch = NO_PARTITION_EPOCH
        self.alone = False  # leads, and there are no other replicas
        self.in_sync: InSync | None = None  # only on a leader with followers
        # How often the end was cut off, so that a request that waits for an offset can tell that its record is gone.
        self.cuts = 0
        self.durable = False
        self.counts_at_once = False  # alone, and records need no sync before they count
        self._set_durable(log.config)
        self.told_high_watermark = 0  # as the leader told it; the follower's own may have to wait for its disk
        if high_watermark is not None:
            self.high_watermark = min(max(high_watermark, log.log_start_offset), log.next_offset)
        if self.durable and log.unflushed:
            # What survived a crash counts from now on, so it must be durable from now on.
            log.flush()
        log.producers.replicated(self.high_watermark)
        if leader_epoch is not None:
            self.lead(sole(node_id, leader_epoch), 0)

    # --- roles

    def lead(self, terms: Terms, now_ms: int) -> bool:
        """Lead the partition on these terms; return whether that is a new epoch.

        Terms that are stale or already known change nothing: a proposal that is under way goes on.
        """
        known = self.leader_epoch, self.partition_epoch
        if self._is_stale(terms) or (self.is_leader and known == (terms.leader_epoch, terms.partition_epoch)):
            return False
        assert self.node_id in terms.replicas, f"{self.name}: node {self.node_id} leads what it has no replica of"
        new_epoch = terms.leader_epoch > self.leader_epoch
        # A skipped epoch belonged to another leader, under which followers may have cut off what they had told this
        # one.
        new_leader = not self.is_leader or terms.leader_epoch > self.leader_epoch + 1
        self.leader_id, self.leader_epoch = self.node_id, terms.leader_epoch
        self.partition_epoch = terms.partition_epoch
        self.is_leader = True
        end = self.log.next_offset
        if new_leader or new_epoch:
            self.epoch_start = end
        self.alone = len(terms.replicas) == 1
        self.counts_at_once = self.alone and not self.durable
        if self.alone:
            self.in_sync = None
        else:
            self.in_sync = self.in_sync or InSync(self.node_id)
            self.in_sync.adopt(terms)
            if new_leader or new_epoch:
                self.in_sync.begin_epoch(now_ms, end, new_leader=new_leader)
        if self._advance(now_ms) or new_leader:
            self.neighbours.moved(self)
        if self.in_sync is not None:
            self._consider_expanding()
        if self.durable and self.needs_sync:
            self.neighbours.must_sync(self)
        return new_leader or new_epoch

    def follow(self, terms: Terms) -> bool:
        """Follow another leader, or none; return whether that is a new epoch. Stale terms change nothing."""
        if self._is_stale(terms):
            return False
        assert terms.leader != self.node_id, f"{self.name}: node {self.node_id} would follow itself"
        led, new_epoch = self.is_leader, terms.leader_epoch > self.leader_epoch
        self.leader_id, self.leader_epoch = terms.leader, terms.leader_epoch
        self.partition_epoch = terms.partition_epoch
        self.is_leader = self.alone = self.counts_at_once = False
        self.in_sync = None
        self.epoch_start = -1
        if led:
            self.neighbours.moved(self)
            self.neighbours.grew(self, hurry=True)  # followers must learn that the leader is elsewhere
        return new_epoch

    def _is_stale(self, terms: Terms) -> bool:
        return (terms.leader_epoch, terms.partition_epoch) < (self.leader_epoch, self.partition_epoch)

    def configure(self, config: LogConfig) -> None:
        self.log.configure(config)
        self._set_durable(config)
        # Fewer in-sync replicas may be enough now, or records that were not synced may count now.
        if self.is_leader and self._advance(self._when_last_heard()):
            self.neighbours.moved(self)

    def _set_durable(self, config: LogConfig) -> None:
        # flush.messages=1 asks for the same in Kafka, which then syncs each append before it answers.
        self.durable = config.fsync_before_ack or config.flush_messages == 1
        self.counts_at_once = self.alone and not self.durable

    def move_to(self, log: Log) -> None:
        """Continue on a copy of the log in another directory."""
        log.configure(self.log.config)
        self.log = log
        self.written()  # the copy is written, even if the old log had unwritten records
        log.producers.replicated(self.high_watermark)
        if log.has_unsynced_segments:
            self.neighbours.sealed(self)

    def uses(self, log: LogState) -> bool:
        """Return whether `log` is the log of this partition, and not a copy that is still being made."""
        return log is self.log

    def rolled(self, log: LogState) -> None:
        """A segment of `log` is complete; if the partition uses this log, report it."""
        if self.uses(log):
            self.neighbours.sealed(self)

    # --- the leader's writing

    def append(
        self,
        records: bytearray | memoryview,
        *,
        now_ms: int,
        acks: int = 1,
        leader_epoch: LeaderEpoch | None = None,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = -1,
        look: Look | None = None,
    ) -> Appended:
        """Append as the leader. `look` is the result of a look into a client's batch, if one was taken already."""
        if not self.alone:
            self._check_append(acks)
        if leader_epoch is not None:
            self.check_epoch(leader_epoch)
        log = self.log
        before = log.next_offset
        appended = log.append(records, self.leader_epoch, now_ms, origin, transaction_version, look)
        if log.unwritten:
            self.neighbours.must_write(self)
        elif self.counts_at_once:
            end = self.high_watermark = log.next_offset
            if log.producers.has_unreplicated:
                log.producers.replicated(end)
        elif self.in_sync is not None and log.next_offset > before:
            self.in_sync.grows_from(before)
            # Other members lack these records: the high watermark moves when they fetch beyond them.
            if len(self.in_sync.maximal) == 1 and self._advance(self.neighbours.steady_ms()):
                self.neighbours.moved(self)
            self.neighbours.grew(self, hurry=True)
        return appended

    def _check_append(self, acks: int) -> None:
        self.require_leader()
        if acks == ACKS_ALL and not self.has_enough:
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS)

    @property
    def has_enough(self) -> bool:
        """Whether enough replicas are in sync for acks=all."""
        in_sync = self.in_sync
        if in_sync is None:
            return True
        return len(in_sync.isr) >= in_sync.effective_min(self.log.config.min_insync_replicas)

    def enough_after(self, offset: int) -> ErrorCode | None:
        """Return the answer for a producer (acks=all) whose records end at `offset`; None if it has to wait."""
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark < offset:
            return None
        in_sync = self.in_sync
        if in_sync is None or len(in_sync.maximal) >= in_sync.effective_min(self.log.config.min_insync_replicas):
            return ErrorCode.NONE
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    @property
    def own_end(self) -> int:
        """The end of the records that this replica may count for the high watermark."""
        log = self.log
        return min(log.recovery_point, log.next_offset) if self.durable else log.written_offset

    @property
    def counts_later(self) -> bool:
        """Whether appended records count only after they were written or synced later."""
        return self.durable or bool(self.log.unwritten)

    @property
    def fetch_offset(self) -> int | None:
        """The offset a follower may fetch from now; None while it waits for a sync, because a fetch acknowledges."""
        end = self.log.next_offset
        return end if self.own_end == end else None

    def _advance(self, now_ms: int) -> bool:
        """Move the leader's high watermark as far as it may go; return whether it moved."""
        if self.in_sync is None:
            reached = self.own_end
        else:
            log = self.log
            reached = self.in_sync.high_watermark(
                self.own_end, log.written_offset, log.config.min_insync_replicas, self.neighbours, now_ms
            )
        return self._raise_to(reached)

    def broker_left(self, broker_id: int, now_ms: int) -> None:
        """A broker can no longer join an ISR: stop waiting for it with the high watermark if it is not a member."""
        in_sync = self.in_sync
        if in_sync is not None and broker_id in in_sync.followers and self.is_leader and self._advance(now_ms):
            self.neighbours.moved(self)

    def _raise_to(self, high_watermark: int) -> bool:
        if high_watermark <= self.high_watermark:
            return False
        assert high_watermark <= self.log.next_offset, f"{self.name}: the high watermark is beyond the log"
        self.high_watermark = high_watermark
        self.log.producers.replicated(high_watermark)
        if self.in_sync is not None:
            self.neighbours.grew(self, hurry=False)
        return True

    def _when_last_heard(self) -> int:
        """Return when a follower last fetched, as the time to judge by where the caller gives none."""
        return 0 if self.in_sync is None else self.in_sync.last_heard_ms

    @property
    def needs_sync(self) -> bool:
        """Whether the log should be synced now: answers wait for it, or flush.messages is reached."""
        log = self.log
        unflushed = log.next_offset - log.recovery_point
        return unflushed > 0 and (self.durable or unflushed >= log.config.flush_messages)

    def written(self) -> None:
        """Some records that waited for a slow disk are written: let them count."""
        log = self.log
        before = log.written_offset
        log.unwritten.settle()
        if not self.is_leader:
            moved = self._raise_to(min(self.told_high_watermark, log.written_offset))
        else:
            if self.in_sync is not None:
                self.in_sync.grows_from(before)
            moved = self._advance(self.neighbours.steady_ms())
            self.neighbours.grew(self, hurry=True)
        if moved:
            self.neighbours.moved(self)

    def write_failed(self, now_ms: int = 0) -> None:
        """Records that wait cannot be written: cut them off. No reader has seen them."""
        self.written()  # let those count that were written all the same
        log = self.log
        if log.unwritten:
            self.cuts += 1  # also if the truncation fails: the log repeats it before its next append
            log.truncate_to(log.written_offset, now_ms=now_ms)

    def synced(self) -> None:
        """The files of the last `log.files_to_sync` are synced."""
        self.log.mark_synced()
        if self.log.unwritten:
            self.written()
        if self.durable and self.is_leader:
            self._advance(self._when_last_heard())

    def sync_failed(self, now_ms: int = 0) -> None:
        """A sync failed: pages may be lost although they still read well, so only what was synced stays."""
        self.log.sync_failed()
        if self.durable:
            self.cuts += 1  # also if the truncation fails: the log repeats it before its next append
            if self.alone:
                self.log.truncate_to(self.high_watermark, now_ms=now_ms)

    def delete_records(self, offset: int) -> int:
        """Move the log start up to `offset`; return the new log start."""
        if self.log.advance_log_start(self.deletion_point(offset)) and self.in_sync is not None:
            self.neighbours.grew(self, hurry=True)
        return self.log.log_start_offset

    @property
    def low_watermark(self) -> int:
        """The lowest log start of all replicas whose brokers are alive."""
        own = self.log.log_start_offset
        return own if self.in_sync is None else self.in_sync.lowest_log_start(own, self.neighbours)

    # --- the leader's followers

    def fetch_as_follower(
        self,
        replica_id: int,
        broker_epoch: BrokerEpoch,
        offset: int,
        max_bytes: int,
        now_ms: int,
        *,
        log_start: int = -1,
        current_leader_epoch: LeaderEpoch = NO_LEADER_EPOCH,
        last_fetched_epoch: LeaderEpoch = NO_LEADER_EPOCH,
        at_least_one: bool = True,
        pulse: Pulse | None = None,
        patient: bool = True,
    ) -> PartitionFetch:
        """Answer a follower's fetch from `offset`, by which it says that it has every record below.

        Unless `patient`, raise Cold where the disk would have to be waited for; then the follower's progress is not
        noted.
        """
        if current_leader_epoch != NO_LEADER_EPOCH:
            self.check_epoch(current_leader_epoch)
        self.require_leader()
        follower = self._follower(replica_id, current_leader_epoch)
        registered = self.neighbours.broker_epoch(replica_id)
        if broker_epoch != -1 and registered is not None and registered > broker_epoch:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # sent by an earlier incarnation of the follower
        log = self.log
        if last_fetched_epoch != NO_LEADER_EPOCH:
            diverging = self._diverging(offset, last_fetched_epoch)
            if diverging is not None:
                watermarks = self.high_watermark, self.last_stable_offset, log.log_start_offset
                return PartitionFetch(None, *watermarks, [], diverging)
        hurries = not patient and offset < log.active.recent_start
        if hurries:
            log.directory.disk.hurry()
        try:
            fetched = log.read(offset, max_bytes, max_offset=log.written_offset, at_least_one=at_least_one)
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        finally:
            if hurries:
                log.directory.disk.relax()
        self._note(follower, broker_epoch, offset, log_start, now_ms, pulse)
        watermarks = self.high_watermark, self.last_stable_offset, log.log_start_offset
        return PartitionFetch(fetched.slice, *watermarks, [], None)

    def _follower(self, replica_id: int, current_leader_epoch: LeaderEpoch) -> FollowerState:
        follower = self.in_sync.followers.get(replica_id) if self.in_sync is not None else None
        if follower is None:
            # A replica that was just added may learn of it before its leader does: it should try again.
            named = current_leader_epoch != NO_LEADER_EPOCH
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH if named else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return follower

    def _note(
        self, follower: FollowerState, epoch: BrokerEpoch, offset: int, log_start: int, now_ms: int, pulse: Pulse | None
    ) -> None:
        before_end, before_start = follower.log_end, follower.log_start
        follower.fetched(offset, self.log.written_offset, now_ms)
        follower.log_start = log_start
        follower.broker_epoch = epoch
        follower.pulse = pulse
        if self._may_expand(follower):
            self.neighbours.isr_may_change(self)
        moved = before_end != offset and self._advance(now_ms)
        if moved or before_start != log_start:
            self.neighbours.moved(self)

    def _may_expand(self, follower: FollowerState) -> bool:
        in_sync = self.in_sync
        return in_sync is not None and in_sync.may_expand(follower, self._least, self.neighbours)

    @property
    def _least(self) -> int:
        """The log end that a member of the ISR must have: everything committed, and all that this leader began with."""
        return max(self.high_watermark, self.epoch_start)

    def _consider_expanding(self) -> None:
        assert self.in_sync is not None, "asked only where there are followers"
        if any(self._may_expand(follower) for follower in self.in_sync.followers.values()):
            self.neighbours.isr_may_change(self)

    def isr_proposal(self, now_ms: int) -> Proposal | None:
        """Return the change of the ISR to ask the controller for, once; None while one is under way."""
        if self.in_sync is None:
            return None
        return self.in_sync.propose(self.leader_epoch, self.log.written_offset, self._least, self.neighbours, now_ms)

    def proposal_accepted(self, terms: Terms, now_ms: int) -> None:
        """Take over the controller's answer to a proposal, unless it is older than what is known by now."""
        in_sync = self.in_sync
        if in_sync is None or terms.leader_epoch != self.leader_epoch or terms.partition_epoch < self.partition_epoch:
            return
        self.partition_epoch = terms.partition_epoch
        in_sync.accepted(terms.isr, terms.partition_epoch)
        if self._advance(now_ms):
            self.neighbours.moved(self)
        self._consider_expanding()

    def proposal_refused(self, error: ErrorCode, now_ms: int) -> bool:
        """The controller refused a proposal; return whether to ask for the same again.

        Only some errors say that nothing was changed. After the others the next metadata records decide.
        """
        if self.in_sync is not None and error in CERTAINLY_NOT_DONE:
            self.in_sync.withdraw()
            if self._advance(now_ms):  # it waited for the followers that were to join
                self.neighbours.moved(self)
        return error not in CERTAINLY_NOT_DONE and error not in AWAIT_METADATA

    # --- the follower's writing

    def append_fetched(self, records: memoryview | bytes, high_watermark: int, log_start: int, now_ms: int) -> int:
        """Append what the leader sent; return how many bytes were new. Batches that are here already are skipped."""
        if self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = self.log
        taken = log.append_replicated(records, self.leader_epoch, now_ms) if len(records) else 0
        self.told_high_watermark = high_watermark
        moved = self._raise_to(min(high_watermark, log.written_offset))
        if log_start <= self.high_watermark:
            moved = log.advance_log_start(log_start) or moved
        if moved:
            self.neighbours.moved(self)
        if log.unwritten:
            self.neighbours.must_write(self)
        return taken

    def truncate_for(
        self, epoch: LeaderEpoch, end_offset: int, now_ms: int = 0, *, producers: ProducersThen | None = None
    ) -> int:
        """Cut the log at `cut_point`; return its new end. `producers`: their state at that offset, if known."""
        self.truncate_to(self.cut_point(epoch, end_offset), now_ms, producers=producers)
        # Forget epochs that are now empty: each would cost another round trip to the leader.
        self.log.epochs.truncate_from_end(self.log.next_offset)
        return self.log.next_offset

    def truncate_to(self, offset: int, now_ms: int = 0, *, producers: ProducersThen | None = None) -> None:
        if self.log.truncate_to(min(offset, self.log.next_offset), now_ms=now_ms, producers=producers):
            self._was_cut()

    def begin_at(self, offset: int, now_ms: int = 0) -> None:
        """Start the log anew at `offset`, because the leader's log starts beyond the end of this one."""
        self.log.truncate_fully_and_start_at(offset, now_ms=now_ms)
        self._was_cut()
        self.high_watermark = offset

    def _was_cut(self) -> None:
        self.cuts += 1
        self.high_watermark = self.told_high_watermark = min(self.high_watermark, self.log.next_offset)
        self.log.producers.replicated(self.high_watermark)
        self.neighbours.moved(self)
