"""Claims about a consumer group, checked against what its members and a watcher saw.

Claims, for runs in which acknowledged data must survive:
1. one owner: within a generation (or member epoch) a partition belongs to at most one member, in the members' own view;
2. no zombies: commits for a partition are accepted from one member per generation, and not from a member whose
   generation was over when it sent the commit, that is, after another member had committed the partition in a later
   one;
3. committed offsets do not go back by themselves, are not forgotten, and were committed by some member;
4. nothing is skipped: every record below a committed offset was delivered to a member.

A member is identified by its group instance id if it has one (a static member that returns keeps its generation), else
by its member id. A commit that failed, or took so long that it may have been sent twice, can take effect at any later
time: going back to its value is due to the network, not a fault of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class SentCommit:
    """A commit that was sent, and what was known then."""

    member: str
    generation: int
    offsets: Mapping[TopicPartition, int]
    begun_seconds: float
    latest: Mapping[TopicPartition, tuple[int, str]]  # the latest generation with an accepted commit, and its member


@dataclass(slots=True)
class _Committed:
    """What is known of the committed offset of one partition."""

    floor: int = -1
    tried: dict[int, int] = field(default_factory=dict)  # offset → how many commits of it were sent
    # offset → how many commits of it may still arrive, or arrive again
    late: dict[int, int] = field(default_factory=dict)
    latest: tuple[int, str] = (-1, "")
    owners: dict[int, str] = field(default_factory=dict)  # generation → owner


class GroupBook:
    """The observations of one group."""

    def __init__(self, group: str, blame: Callable[[str], None], patience_seconds: float) -> None:
        """A commit that is answered within `patience_seconds` was sent only once."""
        self.group = group
        self.delivered: dict[TopicPartition, dict[int, None]] = {}
        self.commits = 0
        self.generations: dict[int, None] = {}
        self._blame = blame
        self._patience_seconds = patience_seconds
        self._owners: dict[tuple[int, TopicPartition], str] = {}
        self._committed: dict[TopicPartition, _Committed] = {}

    # -- what members report

    def assigned(self, member: str, generation: int, partitions: Iterable[TopicPartition]) -> None:
        """Note all partitions that the member owns in this generation."""
        self.generations[generation] = None
        for partition in partitions:
            owner = self._owners.setdefault((generation, partition), member)
            if owner != member:
                self._wrong(partition, f"{owner} and {member} both own it in generation {generation}")

    def handed_out(self, partition: TopicPartition, offset: int) -> None:
        self.delivered.setdefault(partition, {})[offset] = None

    def committing(
        self, member: str, generation: int, offsets: Mapping[TopicPartition, int], now_seconds: float
    ) -> SentCommit:
        for partition, offset in offsets.items():
            known = self._of(partition)
            known.tried[offset] = known.tried.get(offset, 0) + 1
            # Until it is answered it may take effect at any time.
            known.late[offset] = known.late.get(offset, 0) + 1
        latest = {partition: self._of(partition).latest for partition in offsets}
        return SentCommit(member, generation, offsets, now_seconds, latest)

    def committed(self, attempt: SentCommit, now_seconds: float) -> None:
        """Note that the commit was accepted."""
        self.commits += 1
        sent_once = now_seconds - attempt.begun_seconds < self._patience_seconds
        for partition, offset in attempt.offsets.items():
            known = self._of(partition)
            known.floor = max(known.floor, offset)
            if sent_once:
                known.late[offset] -= 1
            generation, other = attempt.latest[partition]
            if generation > attempt.generation and other != attempt.member:
                self._wrong(
                    partition,
                    f"{attempt.member} committed in generation {attempt.generation} although {other} had in"
                    f" {generation}",
                )
            owner = known.owners.setdefault(attempt.generation, attempt.member)
            if owner != attempt.member:
                self._wrong(
                    partition, f"{owner} and {attempt.member} both committed in generation {attempt.generation}"
                )
            known.latest = max(known.latest, (attempt.generation, attempt.member))

    def withdrawn(self, attempt: SentCommit) -> None:
        """Note that the commit was part of a transaction that will never be committed."""
        for partition, offset in attempt.offsets.items():
            known = self._of(partition)
            known.tried[offset] -= 1
            known.late[offset] -= 1

    # -- what the watcher reports

    def floors(self) -> dict[TopicPartition, int]:
        """Return the offsets that are certainly committed now; call it before asking the broker."""
        return {partition: known.floor for partition, known in self._committed.items()}

    def found(self, offsets: Mapping[TopicPartition, int], floors: Mapping[TopicPartition, int]) -> None:
        """Check the answer of OffsetFetch; `floors` is what was certain before the request."""
        for partition, floor in floors.items():
            if floor >= 0 and partition not in offsets:
                self._wrong(partition, f"offset {floor} was committed and is forgotten")
        for partition, offset in offsets.items():
            known = self._of(partition)
            if not known.tried.get(offset):
                self._wrong(partition, f"nobody committed {offset}")
            if offset < floors.get(partition, -1) and not known.late.get(offset):
                self._wrong(partition, f"the committed offset went back from {floors[partition]} to {offset}")
            known.floor = max(known.floor, offset)

    def judge(self, committed: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int]) -> None:
        """Check, when all is quiet, that every remaining record below each committed offset was delivered."""
        for partition, offset in committed.items():
            seen = self.delivered.get(partition, {})
            skipped = [each for each in range(starts[partition], offset) if each not in seen]
            if skipped:
                self._wrong(partition, f"{offset} is committed, but nobody got {skipped[:5]}")

    def _of(self, partition: TopicPartition) -> _Committed:
        return self._committed.setdefault(partition, _Committed())

    def _wrong(self, partition: TopicPartition, what: str) -> None:
        self._blame(f"group {self.group}, {partition.topic}-{partition.partition}: {what}")
