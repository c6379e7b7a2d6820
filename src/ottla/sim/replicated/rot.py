"""Bit rot in a node's metadata: its log, its snapshots, and its election state.

Promised: damage is detected when the node starts. It truncates the log and fetches the end again, uses an older
snapshot, or refuses to start with a JournalError; then it gets empty disks. It never goes on with wrong metadata.

Not promised: a voter that loses the end of its log lacks records that it had acknowledged. Nothing is lost by that as
long as all other voters have them, so this fault strikes only then; and only if all others may vote: with two voters in
doubt (ADR 0022) there would never be a majority. And the leader epoch of a batch is covered by no checksum, as in
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

_EPOCH_BYTES = range(12, 16)  # the position of the leader epoch in a batch
_VOTERS_MIN = 3  # so that the others can go on without one


def quorum_of(machine: SimMachine) -> Quorum | None:
    """Return the machine's replica of the metadata, as it is or last was."""
    node = machine.incarnation
    return node.member.quorum if node is not None and node.composed is not None else None


def may_strike(machine: SimMachine, machines: Sequence[SimMachine]) -> bool:
    """Whether all other voters have what this machine has, so that it may lose it."""
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
    """Flip a bit; return where."""
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
    """Return the positions of all leader epochs in a file of batches."""
    found: set[int] = set()
    position = 0
    while len(content) - position >= HEADER_BYTES:
        found.update(position + at for at in _EPOCH_BYTES)
        position += read_header(content, position).size_bytes
    return found
