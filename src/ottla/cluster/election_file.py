"""`quorum-state`: the node's epoch, leader and vote, as the JSON file that Kafka keeps.

Version 0 belongs to kraft.version 0 and lists the voters; version 1 has the directory id of the voter that got the
node's vote. A checksum, which Kafka ignores, detects a file that a bad disk has changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from zlib import crc32

from ottla.cluster.state import JournalError
from ottla.log.files.disk import Directory, read_all, replace_file
from ottla.model.ids import NO_ID, LeaderEpoch, uuid_bytes, uuid_text
from ottla.raft.journal import ElectionState, ReplicaKey

QUORUM_STATE = "quorum-state"
_CHECKSUM = "checksum"


def read_election(directory: Directory) -> ElectionState:
    try:
        stored = json.loads(read_all(directory.open(QUORUM_STATE)))
        checksum = stored.pop(_CHECKSUM, None)  # Kafka writes none
        if checksum is not None and checksum != crc32(_text(stored)):
            raise ValueError("its checksum is wrong")
        voted_id = int(stored["votedId"])
        voted = ReplicaKey(voted_id, uuid_bytes(stored["votedDirectoryId"]) if "votedDirectoryId" in stored else NO_ID)
        epoch = LeaderEpoch(int(stored["leaderEpoch"]))
        return ElectionState(epoch, int(stored["leaderId"]), voted if voted_id >= 0 else None)
    except FileNotFoundError:
        return ElectionState()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JournalError(f"{directory.path}/{QUORUM_STATE} is damaged: {error}") from None


def write_election(directory: Directory, election: ElectionState, voters: Sequence[int], kraft_version: int) -> None:
    """Write the file; it is durable when this returns."""
    voted = election.voted or ReplicaKey(-1)
    state: dict[str, object] = {"leaderId": election.leader_id, "leaderEpoch": election.epoch, "votedId": voted.id}
    if kraft_version > 0:
        state |= {"votedDirectoryId": uuid_text(voted.directory), "data_version": 1}
    else:
        listed = [{"voterId": voter} for voter in voters]
        state = {"clusterId": "", **state, "appliedOffset": 0, "currentVoters": listed, "data_version": 0}
    replace_file(directory, QUORUM_STATE, _text(state | {_CHECKSUM: crc32(_text(state))}))


def _text(state: dict[str, object]) -> bytes:
    return json.dumps(state, separators=(",", ":")).encode()
