"""The voters of the quorum, and which set of them holds from which offset on (KIP-853).

Rules:
- With kraft.version 0 the set comes from the configuration and has no directory ids; with 1 it comes from the last
  VotersRecord of the log, committed or not, and a voter is a node *with its directory*.
- A truncated log takes its voter sets with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.model.ids import NO_ID
from ottla.raft.journal import QuorumRecord, ReplicaKey
from ottla.records.control import ControlType
from ottla.wire import compile
from ottla.wire.journal.control import KRaftVersionRecord, VotersRecord

KRAFT_VERSION_MAX = 1


class QuorumEndpoint(NamedTuple):
    name: str
    host: str
    port: int


class Voter(NamedTuple):
    id: int
    directory: bytes = NO_ID
    endpoints: tuple[QuorumEndpoint, ...] = ()
    version_min: int = 0
    version_max: int = KRAFT_VERSION_MAX

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.directory)

    @property
    def address(self) -> QuorumEndpoint | None:
        """The endpoint at which other nodes reach this voter: its first listener."""
        return self.endpoints[0] if self.endpoints else None


class VoterSet(Mapping[int, Voter]):
    """An immutable set of voters, in the order of their ids."""

    __slots__ = ("_voters",)

    def __init__(self, voters: Iterable[Voter] = ()) -> None:
        self._voters = {voter.id: voter for voter in sorted(voters)}

    def __getitem__(self, voter_id: int) -> Voter:
        return self._voters[voter_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._voters)

    def __len__(self) -> int:
        return len(self._voters)

    @property
    def majority(self) -> int:
        return len(self._voters) // 2 + 1

    def has(self, key: ReplicaKey) -> bool:
        """Whether a replica is a voter; directories are compared only if both are known."""
        voter = self._voters.get(key.id)
        return voter is not None and (NO_ID in (voter.directory, key.directory) or voter.directory == key.directory)

    def is_only(self, key: ReplicaKey) -> bool:
        return len(self._voters) == 1 and self.has(key)

    def others(self, node_id: int) -> list[Voter]:
        return [voter for voter in self._voters.values() if voter.id != node_id]

    def with_voter(self, voter: Voter) -> VoterSet:
        return VoterSet({**self._voters, voter.id: voter}.values())

    def without(self, voter_id: int) -> VoterSet:
        return VoterSet(voter for voter in self._voters.values() if voter.id != voter_id)

    def encode(self) -> bytes:
        made = VotersRecord.Voter
        record = VotersRecord(
            version=0,
            voters=[
                made(
                    voter_id=voter.id,
                    voter_directory_id=voter.directory,
                    endpoints=[made.Endpoint(name=e.name, host=e.host, port=e.port) for e in voter.endpoints],
                    kraft_version_feature=made.KRaftVersionFeature(
                        min_supported_version=voter.version_min, max_supported_version=voter.version_max
                    ),
                )
                for voter in self._voters.values()
            ],
        )
        return bytes(compile.encode(record, 0))

    @classmethod
    def decode(cls, value: bytes) -> VoterSet:
        return cls(
            Voter(
                voter.voter_id,
                voter.voter_directory_id,
                tuple(QuorumEndpoint(each.name, each.host, each.port) for each in voter.endpoints),
                voter.kraft_version_feature.min_supported_version,
                voter.kraft_version_feature.max_supported_version,
            )
            for voter in compile.decode(VotersRecord, 0, value).voters
        )


def encode_kraft_version(level: int) -> bytes:
    return bytes(compile.encode(KRaftVersionRecord(version=0, kraft_version=level), 0))


def decode_kraft_version(value: bytes) -> int:
    return compile.decode(KRaftVersionRecord, 0, value).kraft_version


class VoterHistory:
    """Which voter set, and which kraft.version, holds from which offset on."""

    __slots__ = ("_sets", "_static", "_versions")

    def __init__(self, static: VoterSet) -> None:
        self._static = static
        self._sets: list[tuple[int, VoterSet]] = []
        self._versions: list[tuple[int, int]] = []

    def load(self, records: Iterable[QuorumRecord]) -> None:
        """Begin anew with the records of a journal."""
        self._sets.clear()
        self._versions.clear()
        for record in records:
            self.add(record)

    def add(self, record: QuorumRecord) -> None:
        if record.type == ControlType.KRAFT_VOTERS:
            self._sets.append((record.offset, VoterSet.decode(record.value)))
        elif record.type == ControlType.KRAFT_VERSION:
            self._versions.append((record.offset, decode_kraft_version(record.value)))

    def truncate(self, offset: int) -> None:
        while self._sets and self._sets[-1][0] >= offset:
            self._sets.pop()
        while self._versions and self._versions[-1][0] >= offset:
            self._versions.pop()

    @property
    def latest(self) -> VoterSet:
        return self._sets[-1][1] if self._sets else self._static

    @property
    def latest_offset(self) -> int:
        """The offset of the present voter set; -1 if it comes from the configuration or from a bootstrap file."""
        return self._sets[-1][0] if self._sets else -1

    def may_hold(self, key: ReplicaKey, high_watermark: int) -> bool:
        """Whether a replica is a voter in the committed set, or in a later one that may still be committed."""
        committed = [voters for at, voters in self._sets if at < high_watermark]
        later = self._sets[len(committed) :]
        return any(voters.has(key) for voters in (committed or [self._static])[-1:] + [each for _, each in later])

    @property
    def kraft_version(self) -> int:
        return self._versions[-1][1] if self._versions else 0

    @property
    def from_bootstrap(self) -> bool:
        """Whether the present voter set comes from a bootstrap file and must be written to the log."""
        return bool(self._sets) and self._sets[-1][0] < 0

    def controls_at(self, offset: int) -> list[tuple[ControlType, bytes]]:
        """Return the control records about the voters for a snapshot of everything below `offset`."""
        versions = [level for at, level in self._versions if at < offset]
        sets = [voters for at, voters in self._sets if at < offset]
        found = [(ControlType.KRAFT_VERSION, encode_kraft_version(versions[-1]))] if versions else []
        return found + ([(ControlType.KRAFT_VOTERS, sets[-1].encode())] if sets else [])
