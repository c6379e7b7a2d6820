"""What must be true of one replicated log at every step: the quorum's metadata log, or that of a partition.

Claims:
1. one leader per epoch: nobody else leads in an epoch in which somebody led, not even a later life of the same node,
   unless it stopped cleanly and has everything that it had;
2. the high watermark of a leader never goes back within its epoch;
3. nothing is committed that too few have: when a leader's high watermark moves, or another replica counts as in sync,
   those that must have the records (a majority of the voters; all in-sync replicas) do have them;
4. committed is committed: every node's log below its high watermark is the same, batch by batch, and never cut off.
   (What was deleted may differ: a follower that crashed may still have what its leader need not tell it about.)
5. what a node takes for synced (below its recovery point) is on disk;
6. a new leader has everything that was committed in its epoch or an earlier one. (Who stood still may learn that it
   leads when it does so no more: it lacks what was committed since, and nobody follows it.)

And of the quorum: who votes does so once per epoch; the voters change one at a time; since they can change, each is
known with its directory, so that a node that lost its disk is not taken for the voter that it was.

A partition may be led uncleanly where that is asked for, and power may be lost by more machines than the settings
survive: then there is nothing to claim of its records (`lossy`), and only 1 to 3 are checked. Compaction makes other
batches of what is committed, on each node others (`rewritten`): there the content is the business of whoever knows the
keys (`ottla.sim.topics`).

The books are pure: they are told what was seen and remember it. `watch.py` does the seeing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.model.ids import NO_ID
from ottla.raft.journal import ReplicaKey
from ottla.raft.voters import VoterSet
from ottla.sim.replicated.committed_batches import CommittedBatch, Line


class Life(NamedTuple):
    """One incarnation of a node."""

    node_id: int
    number: int

    def __str__(self) -> str:
        return f"node {self.node_id}" + (f" (life {self.number})" if self.number > 1 else "")


class LogBook:
    """One replicated log; see the module."""

    def __init__(
        self, name: str, blame: Callable[[str], None], *, lossy: bool = False, rewritten: bool = False
    ) -> None:
        self.name = name
        self.line = Line()
        self.lossy = lossy
        self._rewritten = rewritten
        self._blame = blame
        self._leaders: dict[int, Life] = {}
        self._reached: dict[int, int] = {}  # where what was committed ended, by the epoch whose leader said so
        self._high_watermarks: dict[tuple[Life, int], int] = {}

    @property
    def epochs(self) -> int:
        """How many had a leader."""
        return len(self._leaders)

    def leads(self, life: Life, epoch: int, end_offset: int, *, clean: bool = False) -> None:
        """A node believes that it leads from now on; `clean`: its last life ended cleanly."""
        first = self._leaders.setdefault(epoch, life)
        if first != life and not (clean and first.node_id == life.node_id):
            self._wrong(f"{life} leads in epoch {epoch}, in which {first} led")
        owed = self.owed(epoch)
        if end_offset < owed:
            self._wrong(
                f"{life} leads from epoch {epoch} on, but its log ends at {end_offset}, and {owed} was committed"
            )

    def owed(self, epoch: int) -> int:
        """Up to where the leader of an epoch must have everything."""
        return max((end for said_in, end in self._reached.items() if said_in <= epoch), default=0)

    def moved(self, life: Life, epoch: int, high_watermark: int) -> None:
        """The high watermark of a leader is here now."""
        before = self._high_watermarks.get((life, epoch), -1)
        if high_watermark < before:
            self._wrong(f"{life}: the high watermark went back from {before} to {high_watermark} in epoch {epoch}")
        self._high_watermarks[life, epoch] = high_watermark

    def lacks(self, life: Life, high_watermark: int, missing: Iterable[str]) -> None:
        """Some of those that must have everything below a leader's high watermark do not."""
        for who in missing:
            self._wrong(f"{life} says that everything below {high_watermark} is committed, but {who}")

    def committed(self, life: Life, batches: Iterable[CommittedBatch], *, led_in: int | None) -> None:
        """A node knows of these batches of its log that they are committed; `led_in`: the epoch, if it is a leader."""
        for batch in batches:
            if self.lossy:
                return
            wrong = None if self._rewritten else self.line.compare(batch)
            if wrong is not None:
                self._wrong(f"{life}: {wrong}")
            elif led_in is None and batch.next_offset > self.line.end_offset:
                self._wrong(f"{life} follows and says that {batch} is committed, which no leader said")
            self.line.extend(batch)
            if led_in is not None:
                self._reached[led_in] = max(self._reached.get(led_in, 0), batch.next_offset)

    def has(self, life: Life, batches: Iterable[CommittedBatch]) -> None:
        """A node that begins to lead has these batches, which were committed at other nodes."""
        for batch in batches:
            wrong = None if self.lossy or self._rewritten else self.line.compare(batch)
            if wrong is not None:
                self._wrong(f"{life} begins to lead: {wrong}")

    def unsynced(self, life: Life, recovery_point: int, batch: CommittedBatch) -> None:
        """A node took something for synced that is not."""
        self._wrong(f"{life} says that everything below {recovery_point} is on disk, but {batch} is not")

    def cut(self, life: Life, committed_offset: int, end_offset: int) -> None:
        """A log became shorter."""
        if end_offset < committed_offset and not self.lossy:
            self._wrong(f"{life} cut its log to {end_offset}, although it knew {committed_offset} to be committed")

    def _wrong(self, what: str) -> None:
        self._blame(f"{self.name}: {what}")


class Ballots:
    """Who voted for whom: once per epoch, whatever happens to the voter in between."""

    def __init__(self, blame: Callable[[str], None]) -> None:
        self._blame = blame
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        self._leaders: dict[int, int] = {}

    def voted(self, voter: ReplicaKey, epoch: int, candidate: ReplicaKey) -> None:
        """A voter with another disk is another voter; whom it elects may be known without a disk."""
        before = self._votes.setdefault((voter, epoch), candidate)
        if before.id != candidate.id:
            self._blame(f"quorum: node {voter.id} voted for {before.id} and for {candidate.id} in epoch {epoch}")

    def follows(self, node_id: int, epoch: int, leader_id: int) -> None:
        before = self._leaders.setdefault(epoch, leader_id)
        if before != leader_id:
            self._blame(f"quorum: node {node_id} follows {leader_id} in epoch {epoch}, others followed {before}")


class Electorate:
    """The voters of the quorum change one at a time: any two majorities, one after the other, have one in common."""

    def __init__(self, blame: Callable[[str], None]) -> None:
        self._blame = blame

    def changed(self, life: Life, before: VoterSet, now: VoterSet, *, is_settled: bool) -> None:
        """A leader lets others vote than before; `is_settled`: those before were committed."""
        if not is_settled:
            self._blame(f"quorum: {life} changes the voters, although the last change is not committed")
        others = [voter for voter in before.values() if not now.has(voter.key)]
        others += [voter for voter in now.values() if not before.has(voter.key)]
        if len(others) > 1:
            names = ", ".join(str(voter.id) for voter in others)
            self._blame(f"quorum: {life} changes several voters at once: {names}")
        for voter in now.values():
            if voter.directory == NO_ID:
                self._blame(f"quorum: {life} lets node {voter.id} vote, whatever its directory is")
