"""Invariants of one replicated log at every step: the quorum's metadata log, or that of a partition.

Claims:
1. one leader per epoch: no second node leads in an epoch, not even a later life of the same node, unless that node
   stopped cleanly and kept its whole log;
2. the high watermark of a leader never goes back within its epoch;
3. enough replicas have what is committed: when a leader's high watermark moves, or another replica counts as in sync,
   the replicas that must have the records (a majority of the voters; all in-sync replicas) do have them;
4. commits are permanent: every node's log below its high watermark is the same, batch by batch, and never truncated.
   (Log starts may differ: a follower that crashed may still have records that its leader has deleted.)
5. what a node considers synced (below its recovery point) is on disk;
6. a new leader has everything that was committed in its epoch or an earlier one. (A node that was paused may learn that
   it leads when it does not any more: it lacks what was committed since, and no node follows it.)

And of the quorum: a voter votes once per epoch; the voters change one at a time; where they can change, each is
identified by its directory, too, so that a node that lost its disk is not taken for the same voter.

A scenario may allow unclean elections, or power losses on more machines than the settings survive: then records may be
lost (`lossy`), and only 1 to 3 are checked. Compaction rewrites committed batches differently on each node
(`rewritten`): there `ottla.sim.topics`, which knows the keys, checks the content.

The books are pure: they only record and compare observations. `watch.py` makes the observations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.model.ids import NO_ID, LeaderEpoch
from ottla.raft.journal import ReplicaKey
from ottla.raft.voters import VoterSet
from ottla.sim.replicated.committed_batches import CommittedBatch, CommittedLog


class Life(NamedTuple):
    """One incarnation of a node."""

    node_id: int
    number: int

    def __str__(self) -> str:
        return f"node {self.node_id}" + (f" (life {self.number})" if self.number > 1 else "")


class LogBook:
    """The observations of one replicated log; see the module."""

    def __init__(
        self, name: str, blame: Callable[[str], None], *, lossy: bool = False, rewritten: bool = False
    ) -> None:
        self.name = name
        self.committed_log = CommittedLog()
        self.lossy = lossy
        self._rewritten = rewritten
        self._blame = blame
        self._leaders: dict[int, Life] = {}
        self._reached: dict[int, int] = {}  # the leader's epoch → the end of what it reported as committed
        self._high_watermarks: dict[tuple[Life, int], int] = {}

    @property
    def epochs(self) -> int:
        """How many epochs had a leader."""
        return len(self._leaders)

    def leads(self, life: Life, epoch: LeaderEpoch, end_offset: int, *, clean: bool = False) -> None:
        """A node considers itself leader from now on; `clean`: its last life ended cleanly."""
        first = self._leaders.setdefault(epoch, life)
        if first != life and not (clean and first.node_id == life.node_id):
            self._wrong(f"{life} leads in epoch {epoch}, in which {first} led")
        owed = self.owed(epoch)
        if end_offset < owed:
            self._wrong(
                f"{life} leads from epoch {epoch} on, but its log ends at {end_offset}, and {owed} was committed"
            )

    def owed(self, epoch: LeaderEpoch) -> int:
        """Return the offset up to which the leader of an epoch must have everything."""
        return max((end for said_in, end in self._reached.items() if said_in <= epoch), default=0)

    def moved(self, life: Life, epoch: LeaderEpoch, high_watermark: int) -> None:
        """Note a leader's high watermark."""
        before = self._high_watermarks.get((life, epoch), -1)
        if high_watermark < before:
            self._wrong(f"{life}: the high watermark went back from {before} to {high_watermark} in epoch {epoch}")
        self._high_watermarks[life, epoch] = high_watermark

    def lacks(self, life: Life, high_watermark: int, missing: Iterable[str]) -> None:
        """Report replicas that must have everything below a leader's high watermark and do not."""
        for who in missing:
            self._wrong(f"{life} says that everything below {high_watermark} is committed, but {who}")

    def committed(self, life: Life, batches: Iterable[CommittedBatch], *, led_in: int | None) -> None:
        """Check batches of a node's log that it knows to be committed; `led_in`: the epoch, if the node is leader."""
        for batch in batches:
            if self.lossy:
                return
            wrong = None if self._rewritten else self.committed_log.compare(batch)
            if wrong is not None:
                self._wrong(f"{life}: {wrong}")
            elif led_in is None and batch.next_offset > self.committed_log.end_offset:
                self._wrong(f"{life} follows and says that {batch} is committed, which no leader said")
            self.committed_log.extend(batch)
            if led_in is not None:
                self._reached[led_in] = max(self._reached.get(led_in, 0), batch.next_offset)

    def has(self, life: Life, batches: Iterable[CommittedBatch]) -> None:
        """Check batches of a node that becomes leader, which were committed on other nodes."""
        for batch in batches:
            wrong = None if self.lossy or self._rewritten else self.committed_log.compare(batch)
            if wrong is not None:
                self._wrong(f"{life} begins to lead: {wrong}")

    def unsynced(self, life: Life, recovery_point: int, batch: CommittedBatch) -> None:
        """Report a batch that a node considers synced and is not."""
        self._wrong(f"{life} says that everything below {recovery_point} is on disk, but {batch} is not")

    def cut(self, life: Life, committed_offset: int, end_offset: int) -> None:
        """A log was truncated."""
        if end_offset < committed_offset and not self.lossy:
            self._wrong(f"{life} cut its log to {end_offset}, although it knew {committed_offset} to be committed")

    def _wrong(self, what: str) -> None:
        self._blame(f"{self.name}: {what}")


class Ballots:
    """The votes: once per epoch for each voter, whatever happens to it in between."""

    def __init__(self, blame: Callable[[str], None]) -> None:
        self._blame = blame
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        self._leaders: dict[int, int] = {}

    def voted(self, voter: ReplicaKey, epoch: LeaderEpoch, candidate: ReplicaKey) -> None:
        """Note a vote. A voter with another disk is another voter; a candidate's directory may be unknown."""
        before = self._votes.setdefault((voter, epoch), candidate)
        if before.id != candidate.id:
            self._blame(f"quorum: node {voter.id} voted for {before.id} and for {candidate.id} in epoch {epoch}")

    def follows(self, node_id: int, epoch: LeaderEpoch, leader_id: int) -> None:
        before = self._leaders.setdefault(epoch, leader_id)
        if before != leader_id:
            self._blame(f"quorum: node {node_id} follows {leader_id} in epoch {epoch}, others followed {before}")


class Electorate:
    """The voters of the quorum change one at a time: so two successive majorities always have a voter in common."""

    def __init__(self, blame: Callable[[str], None]) -> None:
        self._blame = blame

    def changed(self, life: Life, before: VoterSet, now: VoterSet, *, is_settled: bool) -> None:
        """A leader changed the set of voters; `is_settled`: the former set was committed."""
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
