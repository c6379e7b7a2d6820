"""What a member of a KIP-848 group knows and still has to say. Pure: no tasks, no clock, no sockets.

    joining --answer--> stable --target differs--> reconciling --let go, take--> acknowledging --heartbeat--> stable
    any --FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID--> fenced --partitions lost--> joining

Rules:
- A heartbeat says only what has changed since the last one that was answered; after one without an answer, and when
  joining, it says everything.
- The server names in an assignment only what this member may read right now. So the member takes the whole target once
  it has let go of the rest, and only then says what it owns: that is the acknowledgement.
- Every target is acknowledged, also one that came and went before it was put into effect: until then the server does
  not know that the member holds none of it, and gives it to nobody.
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
    """What the member wants: names, or a pattern that the server evaluates."""

    names: tuple[str, ...] = ()
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class Beat:
    """The contents of one heartbeat; None: as before."""

    epoch: int
    full: bool
    subscribed: Subscribed | None
    held: Held | None


class MemberState:
    """One member's side of the conversation."""

    def __init__(self) -> None:
        self.epoch = JOIN_EPOCH
        self.fenced = False
        self.target: Held = {}
        self.held: Held = {}
        self.subscribed = Subscribed()
        self._said_subscribed: Subscribed | None = None  # None: the server may not know
        self._said_held: Held | None = None
        self._owes_answer = False  # the server waits to hear what became of its target

    @property
    def is_joined(self) -> bool:
        return self.epoch > JOIN_EPOCH

    @property
    def must_reconcile(self) -> bool:
        return self.is_joined and self.target != self.held

    @property
    def must_speak(self) -> bool:
        """Whether the next heartbeat should go at once."""
        if self.fenced or self.epoch < JOIN_EPOCH:
            return False
        if not self.is_joined:
            return True
        return self._said_subscribed != self.subscribed or self._must_acknowledge

    @property
    def _must_acknowledge(self) -> bool:
        return not self.must_reconcile and (self._owes_answer or self._said_held != self.held)

    def next_beat(self) -> Beat:
        """What to say now."""
        full = not self.is_joined or self._said_subscribed is None or self._said_held is None
        return Beat(
            epoch=self.epoch,
            full=full,
            subscribed=self.subscribed if full or self._said_subscribed != self.subscribed else None,
            held=self.held if full or self._said_held != self.held or self._must_acknowledge else None,
        )

    def answered(self, beat: Beat, epoch: int, target: Held | None) -> None:
        """The server heard `beat`."""
        if self.fenced or beat.epoch != self.epoch:
            return
        if beat.subscribed is not None:
            self._said_subscribed = beat.subscribed
        if beat.held is not None:
            self._said_held = beat.held
            self._owes_answer = False
        self.epoch = epoch
        if target is not None:
            self.target = target
            self._owes_answer = target != beat.held

    def unanswered(self) -> None:
        """The server may or may not have heard: say everything again.

        A target that is not in effect yet is void: the next heartbeat says that nothing of it is held, upon which the
        server may give it to others. Its answer names the target that counts.
        """
        self._said_subscribed = self._said_held = None
        self.target = self.held

    def took(self, held: Held) -> None:
        """The member now owns exactly this."""
        self.held = held

    def fence(self) -> None:
        """The group has gone on; nothing is owned any more, and the member joins anew once `rejoin` is called."""
        self.fenced = True
        self.epoch = JOIN_EPOCH
        self.target, self.held = {}, {}
        self.unanswered()

    def rejoin(self) -> None:
        """The partitions are let go of: join again."""
        self.fenced = False

    def left(self) -> None:
        """The member said goodbye by itself."""
        self.fence()


def held_of(pairs: Iterable[tuple[bytes, int]]) -> Held:
    """The normal form: equal when the same partitions are meant."""
    found: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(set(pairs)):
        found.setdefault(topic_id, []).append(index)
    return {topic_id: tuple(indexes) for topic_id, indexes in found.items()}
