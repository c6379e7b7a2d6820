"""The state of a member of a KIP-848 group and what it has to report. Pure: no tasks, no clock, no sockets.

    joining --answer--> stable --target differs--> reconciling --revoke, take--> acknowledging --heartbeat--> stable
    any --FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID--> fenced --partitions lost--> joining

Rules:
- A heartbeat carries only what has changed since the last one that was answered; after one without an answer, and when
  joining, it carries everything.
- The coordinator assigns only partitions that this member may read right now. So the member takes the whole target
  once it has revoked the rest, and only then reports what it owns: that is the acknowledgement.
- Every target is acknowledged, also one that was replaced before it was put into effect: until then the coordinator
  does not know that the member owns none of it, and assigns it to no other member.
- An answer to a heartbeat that was sent before the member was fenced, or left, changes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2

Held = Mapping[bytes, tuple[int, ...]]  # partition indexes by topic id, both sorted


class Subscribed(NamedTuple):
    """The member's subscription: topic names, or a regular expression that the coordinator evaluates."""

    names: tuple[str, ...] = ()
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class MemberReport:
    """The contents of one heartbeat; None in a field: as before."""

    epoch: int
    full: bool
    subscribed: Subscribed | None
    held: Held | None


class ClientMemberState:
    """The client's state of one member."""

    def __init__(self) -> None:
        self.epoch = JOIN_EPOCH
        self.fenced = False
        self.target: Held = {}
        self.held: Held = {}
        self.subscribed = Subscribed()
        self._said_subscribed: Subscribed | None = None  # None: the coordinator may not know it
        self._said_held: Held | None = None
        self._owes_answer = False  # the coordinator waits for the acknowledgement of its target

    @property
    def is_joined(self) -> bool:
        return self.epoch > JOIN_EPOCH

    @property
    def must_reconcile(self) -> bool:
        return self.is_joined and self.target != self.held

    @property
    def must_report(self) -> bool:
        """Whether the next heartbeat should be sent at once."""
        if self.fenced or self.epoch < JOIN_EPOCH:
            return False
        if not self.is_joined:
            return True
        return self._said_subscribed != self.subscribed or self._must_acknowledge

    @property
    def _must_acknowledge(self) -> bool:
        return not self.must_reconcile and (self._owes_answer or self._said_held != self.held)

    def next_report(self) -> MemberReport:
        """Return the contents of the next heartbeat."""
        full = not self.is_joined or self._said_subscribed is None or self._said_held is None
        return MemberReport(
            epoch=self.epoch,
            full=full,
            subscribed=self.subscribed if full or self._said_subscribed != self.subscribed else None,
            held=self.held if full or self._said_held != self.held or self._must_acknowledge else None,
        )

    def answered(self, report: MemberReport, epoch: int, target: Held | None) -> None:
        """Take over the answer to the heartbeat `report`."""
        if self.fenced or report.epoch != self.epoch:
            return
        if report.subscribed is not None:
            self._said_subscribed = report.subscribed
        if report.held is not None:
            self._said_held = report.held
            self._owes_answer = False
        self.epoch = epoch
        if target is not None:
            self.target = target
            self._owes_answer = target != report.held

    def unanswered(self) -> None:
        """Note that the coordinator may or may not have received the heartbeat: the next one carries everything again.

        A target that is not in effect yet becomes void: the next heartbeat says that the member owns none of it, upon
        which the coordinator may assign it to others. The answer names the target that counts.
        """
        self._said_subscribed = self._said_held = None
        self.target = self.held

    def took(self, held: Held) -> None:
        """Note that the member now owns exactly these partitions."""
        self.held = held

    def fence(self) -> None:
        """Note that the group has gone on: the member owns nothing any more, and joins again once
        `rejoin` is called.
        """
        self.fenced = True
        self.epoch = JOIN_EPOCH
        self.target, self.held = {}, {}
        self.unanswered()

    def rejoin(self) -> None:
        """Let a fenced member join again, after its partitions were dropped."""
        self.fenced = False

    def left(self) -> None:
        """Note that the member has left the group."""
        self.fence()


def held_of(pairs: Iterable[tuple[bytes, int]]) -> Held:
    """Return partitions in the normal form, in which equal sets are equal."""
    found: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(set(pairs)):
        found.setdefault(topic_id, []).append(index)
    return {topic_id: tuple(indexes) for topic_id, indexes in found.items()}
