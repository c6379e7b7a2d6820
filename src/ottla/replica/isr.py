"""InSync: what a leader knows of its followers — the log end of each, which are in sync, and the ISR change that was
proposed to the controller.

Rules:
- The ISR is the one that the controller last announced. While a proposal is under way no other is made, and the maximal
  ISR (the ISR and the followers that are about to join it) bounds the high watermark: a record that a present or coming
  member may lack is never below it.
- The high watermark is the lowest log end of the maximal ISR and of the followers that are caught up and eligible to
  join. The high watermark does not move while the ISR is smaller than `min.insync.replicas` (KIP-966).
- A follower joins when its log end has reached the high watermark and the beginning of the leader's epoch, and its
  fetches carry the epoch under which its broker is registered now. A follower leaves when it was not caught up with the
  log end for replica.lag.time.max.ms.
- The fetches of a follower's session do not visit its idle partitions: its `Pulse` says when the session last fetched,
  and when the log grows, a follower that had all of it was caught up at that time.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER_EPOCH, NO_PARTITION_EPOCH, BrokerEpoch, LeaderEpoch, PartitionEpoch
from ottla.replica.neighbours import OtherBrokers
from ottla.replica.terms import Proposal, Terms

UNKNOWN = -1
# CERTAINLY_NOT_DONE: the controller changed nothing. AWAIT_METADATA: the next metadata records tell what it changed.
CERTAINLY_NOT_DONE = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
AWAIT_METADATA = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)


class Pulse:
    """The time of the last fetch in a follower's fetch session; shared by all partitions of the session."""

    __slots__ = ("heard_ms",)

    def __init__(self, now_ms: int) -> None:
        self.heard_ms = now_ms


class FollowerState:
    """What the leader knows of one other replica. `log_end` is -1 until it has fetched from this leader."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "fetched_ms",
        "leader_end",
        "log_end",
        "log_start",
        "pulse",
    )

    def __init__(self, broker_id: int, caught_up_ms: int) -> None:
        self.broker_id = broker_id
        self.log_end = UNKNOWN
        self.log_start = UNKNOWN
        self.leader_end = UNKNOWN  # the leader's log end at this follower's last fetch
        self.fetched_ms = 0
        self.caught_up_ms = caught_up_ms
        self.broker_epoch: BrokerEpoch | None = None
        self.pulse: Pulse | None = None

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> None:
        """Note that the follower fetched from `offset`, so it has every record below."""
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end:
            # A log that grows all the time is never fetched to its very end: the end at the fetch before is enough.
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.log_end = offset
        self.leader_end = max(leader_end, self.leader_end)
        self.fetched_ms = now_ms

    def is_caught_up(self, leader_end: int, now_ms: int, lag_ms_max: int) -> bool:
        return self.log_end == leader_end or now_ms - self.caught_up_ms <= lag_ms_max


class InSync:
    __slots__ = ("followers", "isr", "maximal", "node_id", "partition_epoch", "pending")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.followers: dict[int, FollowerState] = {}
        self.isr: tuple[int, ...] = ()
        self.maximal: frozenset[int] = frozenset()
        self.partition_epoch = NO_PARTITION_EPOCH
        self.pending: Proposal | None = None

    def adopt(self, terms: Terms) -> None:
        """Take over what the controller decided; it settles a proposal that was under way."""
        self.isr = terms.isr
        self.maximal = frozenset(terms.isr)
        self.partition_epoch = terms.partition_epoch
        self.pending = None
        others = [broker_id for broker_id in terms.replicas if broker_id != self.node_id]
        # A replica that is added in the middle of an epoch counts as not caught up until it fetches.
        self.followers = {other: self.followers.get(other) or FollowerState(other, 0) for other in others}

    def begin_epoch(self, now_ms: int, end: int, *, new_leader: bool) -> None:
        """Start an epoch as leader. A `new_leader` forgets what it knew of its followers; a leader that was elected
        again keeps their log ends.
        """
        for broker_id, before in tuple(self.followers.items()):
            caught_up_ms = now_ms if broker_id in self.maximal else 0
            after = self.followers[broker_id] = FollowerState(broker_id, caught_up_ms)
            if not new_leader:
                after.log_end, after.log_start, after.leader_end = before.log_end, before.log_start, end
                after.fetched_ms = caught_up_ms
                after.broker_epoch, after.pulse = before.broker_epoch, before.pulse

    def grows_from(self, end: int) -> None:
        """Note that the log, which ended at `end`, grows: followers that had all of it were caught up at their
        session's last fetch.
        """
        for follower in self.followers.values():
            if follower.log_end == end and follower.pulse is not None:
                heard_ms = follower.pulse.heard_ms
                if heard_ms > follower.fetched_ms:
                    follower.fetched(end, end, heard_ms)

    @property
    def last_heard_ms(self) -> int:
        """When a follower last fetched; 0 if none has."""
        return max((follower.fetched_ms for follower in self.followers.values()), default=0)

    def lowest_log_start(self, own: int, others: OtherBrokers) -> int:
        """Return the lowest log start of this replica, whose own is given, and of all whose brokers are alive."""
        starts = (
            follower.log_start
            for broker_id, follower in self.followers.items()
            if follower.log_start < own and others.broker_epoch(broker_id) is not None
        )
        return min(starts, default=own)

    def high_watermark(self, own_end: int, end: int, min_isr: int, others: OtherBrokers, now_ms: int) -> int:
        """Return the offset below which every replica that counts has every record; -1 if it must not move."""
        if len(self.isr) < self.effective_min(min_isr):
            return UNKNOWN
        lowest = own_end
        for broker_id, follower in self.followers.items():
            if follower.log_end < lowest and (
                broker_id in self.maximal
                or (follower.is_caught_up(end, now_ms, others.lag_ms_max) and self._is_eligible(follower, others))
            ):
                lowest = follower.log_end
        return lowest

    def effective_min(self, min_isr: int) -> int:
        """Return `min_isr`, but at most the number of replicas."""
        return min(min_isr, len(self.followers) + 1)

    # --- the ISR

    def _is_eligible(self, follower: FollowerState, others: OtherBrokers) -> bool:
        epoch = others.broker_epoch(follower.broker_id)
        return (
            follower.broker_epoch is not None
            and epoch is not None
            and follower.broker_epoch in (-1, epoch)
            and others.may_join(follower.broker_id)
        )

    def _can_join(self, follower: FollowerState, least: int, others: OtherBrokers) -> bool:
        return follower.log_end >= least and follower.broker_id not in self.isr and self._is_eligible(follower, others)

    def may_expand(self, follower: FollowerState, least: int, others: OtherBrokers) -> bool:
        """Whether this follower should be proposed for the ISR now; `least` is the log end that a member must have."""
        return self.pending is None and self._can_join(follower, least, others)

    def lagging(self, end: int, now_ms: int, lag_ms_max: int) -> list[int]:
        """Return the members of the ISR that have fallen behind."""
        found = []
        for broker_id in self.isr:
            follower = self.followers.get(broker_id)
            if broker_id != self.node_id and (follower is None or not follower.is_caught_up(end, now_ms, lag_ms_max)):
                found.append(broker_id)
        return found

    def propose(
        self, leader_epoch: LeaderEpoch, end: int, least: int, others: OtherBrokers, now_ms: int
    ) -> Proposal | None:
        """Return the next change of the ISR if one is due; it counts as under way from now on."""
        if self.pending is not None:
            return None
        joining = [each.broker_id for each in self.followers.values() if self._can_join(each, least, others)]
        if joining:
            members: Iterable[int] = (*self.isr, *joining)
            # The high watermark waits for the joining followers from now on, whatever the controller decides. A shrink
            # takes effect only when the controller has agreed.
            self.maximal = frozenset(members)
        else:
            gone = self.lagging(end, now_ms, others.lag_ms_max)
            if not gone:
                return None
            members = [broker_id for broker_id in self.isr if broker_id not in gone]
        assert self.node_id in members, "a leader proposes no ISR without itself"
        isr = tuple((broker_id, self._epoch_of(broker_id, others)) for broker_id in members)
        self.pending = Proposal(leader_epoch, self.partition_epoch, isr)
        return self.pending

    def _epoch_of(self, broker_id: int, others: OtherBrokers) -> BrokerEpoch:
        if broker_id == self.node_id:
            epoch = others.broker_epoch(broker_id)
        else:
            # A member that has not fetched yet has no known epoch. If its broker is gone, the controller has already
            # taken it out of the ISR and refuses the proposal because of its old partition epoch.
            epoch = self.followers[broker_id].broker_epoch if broker_id in self.followers else None
        return NO_BROKER_EPOCH if epoch is None else epoch

    def accepted(self, isr: tuple[int, ...], partition_epoch: PartitionEpoch) -> None:
        self.isr = isr
        self.maximal = frozenset(isr)
        self.partition_epoch = partition_epoch
        self.pending = None

    def withdraw(self) -> None:
        """Drop the proposal: the controller certainly did not carry it out."""
        self.pending = None
        self.maximal = frozenset(self.isr)
