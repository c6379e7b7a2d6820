"""Bits that flip in what a node keeps of the metadata: its log, snapshots of it, what it remembers of elections.

What is promised: damage is noticed when the node starts. It cuts the end of the log off and fetches it again, does
with an older snapshot, or refuses to start with a JournalError; then it gets empty disks. It is never silently wrong.

What is not: a voter that loses the end of its log lacks what it had said it has. Nothing is lost by that as long as
all other voters have it, so this strikes only then; and only if all of those vote: with two in doubt (ADR 0022) there
would be no majority, and no leader ever. And the leader epoch of a batch is covered by no checksum, as with
Kafka.
"""

from __future__ import annotations

import random
from collections.abc import Container, Sequence

from ottla.cluster.election_file import QUORUM_STATE
from ottla.cluster.store import DIRECTORY
from ottla.log.files.names import LOG
from ottla.records.batch import HEADER_BYTES, read_header
from ottla.server.quorum.quorum import Quorum
from ottla.sim.cluster import SimMachine

_EPOCH_BYTES = range(12, 16)  # of a batch
_VOTERS_MIN = 3  # so that the others can go on without one


def quorum_of(machine: SimMachine) -> Quorum | None:
    """The replica of the metadata on a machine, as it is or last was."""
    member = getattr(machine.incarnation, "member", None)
    return member.quorum if member is not None else None


def may_strike(machine: SimMachine, machines: Sequence[SimMachine]) -> bool:
    """Whether everybody else has what this one has, so that it may lose it."""
    own = quorum_of(machine)
    others = [(each, quorum_of(each)) for each in machines if each is not machine]
    leader = next((quorum for each, quorum in others if quorum is not None and each.running and quorum.is_leader), None)
    if own is None or leader is None:
        return False
    voters = leader.node.history.latest
    if not voters.has(own.node.me):
        return True
    up = {
        quorum.node.me.id
        for each, quorum in others
        if quorum is not None
        and each.running
        and not quorum.in_doubt
        and voters.has(quorum.node.me)
        and quorum.epoch == leader.epoch
        and quorum.store.flushed_offset >= max(own.end_offset, leader.end_offset)
    }
    return len(voters) >= _VOTERS_MIN and len(up) == len(voters) - 1


def strike(machine: SimMachine, rng: random.Random) -> str:
    """Flips a bit; returns where."""
    disk = next(iter(machine.disks.values()))
    paths = [path for path in disk.paths() if path.startswith(f"{DIRECTORY}/")]
    kinds = [
        [path for path in paths if path.endswith(LOG)],
        [path for path in paths if path.endswith(".checkpoint") and "-" in path.removeprefix(f"{DIRECTORY}/")],
        [path for path in paths if path.endswith(f"/{QUORUM_STATE}")],
    ]
    found = [kind for kind in kinds if any(disk.content(path) for path in kind)]
    if not found:
        return "nothing"
    path = rng.choice([path for path in rng.choice(found) if disk.content(path)])
    spared: Container[int] = () if path.endswith(QUORUM_STATE) else _epochs(disk.content(path))
    machine.damaged = True
    machine.scars.append(path)
    return f"{path}, byte {disk.flip_bit(path, spared)}"


def _epochs(content: bytes) -> set[int]:
    """The bytes of all leader epochs in a file of batches."""
    found: set[int] = set()
    position = 0
    while len(content) - position >= HEADER_BYTES:
        found.update(position + at for at in _EPOCH_BYTES)
        position += read_header(content, position).size_bytes
    return found
