"""InSync: the leader's book about its followers — how far each is, who is in sync, what the controller was asked.

Rules:
- The ISR is what the controller said last. While a proposal is under way nothing else is proposed, and the maximal ISR
  (what it may be by now: the ISR and those about to join) bounds the high watermark: it never counts a record that a
  member, present or coming, may lack.
- The high watermark is the lowest log end of the maximal ISR and of those who are caught up and about to join. It does
  not move while the ISR is smaller than `min.insync.replicas` (KIP-966).
- A follower joins when its log end has reached the high watermark and the beginning of the leader's epoch, and its
  fetches carry the epoch under which its broker is registered now. It leaves when it was not caught up with the log
  end for replica.lag.time.max.ms.
- An idle follower's partitions are not visited by its fetches: its `Pulse` says when it was last heard, and when the
  log grows a follower that had everything was caught up at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER_EPOCH, NO_PARTITION_EPOCH, BrokerEpoch, PartitionEpoch
from ottla.replica.neighbours import OtherBrokers
from ottla.replica.terms import Proposal, Terms

UNKNOWN = -1
# Errors by which the controller says that it changed nothing, and those after which the metadata will tell.
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
    """When a follower's fetch session was last heard; shared by all of its partitions."""

    __slots__ = ("heard_ms",)

    def __init__(self, now_ms: int) -> None:
        self.heard_ms = now_ms


class Follower:
    """What is known of one other replica. Its log end is -1 until it has fetched from this leader."""

    __slots__ = ("broker_epoch", "broker_id", "caught_up_ms", "end", "fetched_ms", "leader_end", "log_start", "pulse")

    def __init__(self, broker_id: int, caught_up_ms: int) -> None:
        self.broker_id = broker_id
        self.end = UNKNOWN
        self.log_start = UNKNOWN
        self.leader_end = UNKNOWN  # at its last fetch
        self.fetched_ms = 0
        self.caught_up_ms = caught_up_ms
        self.broker_epoch: BrokerEpoch | None = None
        self.pulse: Pulse | None = None

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> None:
        """It has everything below `offset`."""
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end:
            # Where the log grows all the time nobody is ever at its very end.
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end = offset
        self.leader_end = max(leader_end, self.leader_end)
        self.fetched_ms = now_ms

    def is_caught_up(self, leader_end: int, now_ms: int, lag_ms_max: int) -> bool:
        return self.end == leader_end or now_ms - self.caught_up_ms <= lag_ms_max


class InSync:
    __slots__ = ("followers", "isr", "maximal", "node_id", "partition_epoch", "pending")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.followers: dict[int, Follower] = {}
        self.isr: tuple[int, ...] = ()
        self.maximal: frozenset[int] = frozenset()
        self.partition_epoch = NO_PARTITION_EPOCH
        self.pending: Proposal | None = None

    def adopt(self, terms: Terms) -> None:
        """What the controller decided; whatever was proposed is settled by it."""
        self.isr = terms.isr
        self.maximal = frozenset(terms.isr)
        self.partition_epoch = terms.partition_epoch
        self.pending = None
        others = [broker_id for broker_id in terms.replicas if broker_id != self.node_id]
        # A replica that is added in the middle of an epoch has everything to prove.
        self.followers = {other: self.followers.get(other) or Follower(other, 0) for other in others}

    def begin_epoch(self, now_ms: int, end: int, *, new_leader: bool) -> None:
        """This node was elected, or elected again: what followers said to its predecessor does not count."""
        for broker_id, before in tuple(self.followers.items()):
            caught_up_ms = now_ms if broker_id in self.maximal else 0
            after = self.followers[broker_id] = Follower(broker_id, caught_up_ms)
            if not new_leader:
                after.end, after.log_start, after.leader_end = before.end, before.log_start, end
                after.fetched_ms = caught_up_ms
                after.broker_epoch, after.pulse = before.broker_epoch, before.pulse

    def grows_from(self, end: int) -> None:
        """The log, which ended at `end`, grows: who had all of it was caught up when it was last heard."""
        for follower in self.followers.values():
            if follower.end == end and follower.pulse is not None:
                heard_ms = follower.pulse.heard_ms
                if heard_ms > follower.fetched_ms:
                    follower.fetched(end, end, heard_ms)

    def high_watermark(self, own_end: int, end: int, min_isr: int, others: OtherBrokers, now_ms: int) -> int:
        """Below which everyone who counts has everything; -1 if it must not move."""
        if len(self.isr) < self.effective_min(min_isr):
            return UNKNOWN
        lowest = own_end
        for broker_id, follower in self.followers.items():
            if follower.end < lowest and (
                broker_id in self.maximal
                or (follower.is_caught_up(end, now_ms, others.lag_ms_max) and self._is_eligible(follower, others))
            ):
                lowest = follower.end
        return lowest

    def effective_min(self, min_isr: int) -> int:
        """No more in-sync replicas can be asked for than there are replicas."""
        return min(min_isr, len(self.followers) + 1)

    # --- the ISR

    def _is_eligible(self, follower: Follower, others: OtherBrokers) -> bool:
        epoch = others.broker_epoch(follower.broker_id)
        return (
            follower.broker_epoch is not None
            and epoch is not None
            and follower.broker_epoch in (-1, epoch)
            and others.may_join(follower.broker_id)
        )

    def _can_join(self, follower: Follower, least: int, others: OtherBrokers) -> bool:
        return follower.end >= least and follower.broker_id not in self.isr and self._is_eligible(follower, others)

    def may_expand(self, follower: Follower, least: int, others: OtherBrokers) -> bool:
        """Whether this follower has just become one to propose; `least`: what a member has."""
        return self.pending is None and self._can_join(follower, least, others)

    def lagging(self, end: int, now_ms: int, lag_ms_max: int) -> list[int]:
        """The members that have fallen behind."""
        found = []
        for broker_id in self.isr:
            follower = self.followers.get(broker_id)
            if broker_id != self.node_id and (follower is None or not follower.is_caught_up(end, now_ms, lag_ms_max)):
                found.append(broker_id)
        return found

    def propose(self, leader_epoch: int, end: int, least: int, others: OtherBrokers, now_ms: int) -> Proposal | None:
        """The next change of the ISR, if one is due; it is under way from now on."""
        if self.pending is not None:
            return None
        joining = [each.broker_id for each in self.followers.values() if self._can_join(each, least, others)]
        if joining:
            members: Iterable[int] = (*self.isr, *joining)
            # Stricter for the high watermark from now on, whatever the controller will say. A shrink is not believed
            # before the controller has agreed.
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
            # A member that has not fetched yet: should it be gone, the controller's ISR is another by then.
            epoch = self.followers[broker_id].broker_epoch if broker_id in self.followers else None
        return NO_BROKER_EPOCH if epoch is None else epoch

    def accepted(self, isr: tuple[int, ...], partition_epoch: PartitionEpoch) -> None:
        self.isr = isr
        self.maximal = frozenset(isr)
        self.partition_epoch = partition_epoch
        self.pending = None

    def withdraw(self) -> None:
        """The controller certainly did not do it."""
        self.pending = None
        self.maximal = frozenset(self.isr)
