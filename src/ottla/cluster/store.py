"""Store: the metadata journal on disk — the log `__cluster_metadata-0`, its snapshots and `quorum-state`.

Rules:
- What `append` returned for is on disk: a metadata change is answered only after an fsync (changes are rare, and a
  group of any size costs one).
- A snapshot holds everything below its offset; what lies below the oldest kept one is deleted. It is complete when it
  has its name: until then it is written under another.
- Epochs only go up. Each start of the single voter begins a new one, with a LeaderChange record at its beginning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.cluster import journal
from ottla.cluster.entry import Entry
from ottla.cluster.journal import Control, Item
from ottla.cluster.state import JournalError
from ottla.log.config import LogConfig
from ottla.log.disk import Directory, Disk, StorageError, read_all, replace_file
from ottla.log.log import Log, Origin
from ottla.model.ids import METADATA_TOPIC_ID
from ottla.model.limits import INT32_MAX, SCAN_READ_BYTES
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.records.control import ControlType
from ottla.wire import compile
from ottla.wire.journal.control import KRaftVersionRecord, VotersRecord

DIRECTORY = f"{CLUSTER_METADATA_TOPIC}-0"
QUORUM_STATE = "quorum-state"
SNAPSHOTS_KEPT = 2  # one to start from, one in case that one cannot be read

_SNAPSHOT_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """From the `metadata.log.*` settings."""

    segment_bytes: int
    segment_ms: int
    bytes_between_snapshots: int


class Store:
    """Use `Store.open`, then `replay`, then `lead`."""

    def __init__(self, log: Log, directory: Directory, config: StoreConfig) -> None:
        self.log = log
        self.epoch = 0
        self._directory = directory
        self._config = config
        self._snapshots: list[tuple[int, int]] = []  # (offset, epoch), oldest first
        self._bytes_since_snapshot = 0
        self._last_timestamp = 0
        self._quorum: dict[ControlType, Control] = {}  # kraft.version and voters, if the journal has them
        self._failure: StorageError | None = None

    @classmethod
    def open(cls, disk: Disk, config: StoreConfig, *, now_ms: int, clean: bool) -> Store:
        directory = Directory(disk, DIRECTORY)
        snapshots = sorted(_snapshot_id(name) for name in disk.list(DIRECTORY) if _SNAPSHOT_NAME.fullmatch(name))
        log_config = LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=config.segment_ms,
            max_message_bytes=INT32_MAX,
            retention_ms=-1,
            retention_bytes=-1,
            file_delete_delay_ms=0,
        )
        recovery_point = snapshots[-1][0] if snapshots else 0
        log = Log.open(
            disk,
            DIRECTORY,
            log_config,
            now_ms=now_ms,
            recovery_point=recovery_point,
            clean=clean,
            topic_id=METADATA_TOPIC_ID,
        )
        store = cls(log, directory, config)
        store._snapshots = snapshots
        return store

    @property
    def end_offset(self) -> int:
        return self.log.next_offset

    @property
    def kraft_version(self) -> int:
        """How the quorum keeps its voters: 0 in the configuration, 1 in the journal (KIP-853)."""
        found = self._quorum.get(ControlType.KRAFT_VERSION)
        return compile.decode(KRaftVersionRecord, 0, found.value).kraft_version if found else 0

    # --- reading

    def replay(self, apply: Callable[[Any], object], now_ms: int) -> None:
        """Apply the newest readable snapshot and everything behind it."""
        offset = self._replay_snapshot(apply)
        if self.log.next_offset < offset:  # the log lost what the snapshot still knows
            self.log.truncate_fully_and_start_at(offset, now_ms=now_ms)
        if offset < self.log.log_start_offset:
            raise JournalError(
                f"the metadata begins at offset {self.log.log_start_offset}, and no snapshot holds what was before"
            )
        while offset < self.log.next_offset:
            found = self.log.read(offset, SCAN_READ_BYTES, max_offset=self.log.next_offset)
            if found.slice is None:
                break
            self._bytes_since_snapshot += found.size_bytes
            for item in journal.items(memoryview(found.slice.read())):
                if item.offset >= offset:
                    self._take(item, apply)
                    offset = item.offset + 1
        self.epoch = max(self.epoch, self._read_quorum_state())

    def _replay_snapshot(self, apply: Callable[[Any], object]) -> int:
        problem: Exception | None = None
        for offset, epoch in reversed(self._snapshots):
            name = _snapshot_name(offset, epoch)
            try:
                items = journal.snapshot_items(read_all(self._directory.open(name)), name)
            except JournalError as error:
                problem = error
                continue
            for item in items:
                self._take(item, apply)
            self.epoch = max(self.epoch, epoch)
            return offset
        if problem is not None and self.log.log_start_offset > 0:
            raise problem
        return 0

    def _take(self, item: Item, apply: Callable[[Any], object]) -> None:
        self.epoch = max(self.epoch, item.epoch)
        self._last_timestamp = item.timestamp
        if isinstance(item.content, Entry):
            apply(item.content.record)
        elif item.content.type in (ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS):
            self._quorum[item.content.type] = item.content

    def _read_quorum_state(self) -> int:
        """The epoch this node has seen, which may be higher than any in the log."""
        try:
            stored = json.loads(read_all(self._directory.open(QUORUM_STATE)))
            return int(stored["leaderEpoch"])
        except FileNotFoundError:
            return 0
        except (ValueError, KeyError, TypeError) as error:
            raise JournalError(f"{DIRECTORY}/{QUORUM_STATE} is damaged: {error}") from None

    def _voters(self) -> list[int] | None:
        found = self._quorum.get(ControlType.KRAFT_VOTERS)
        return [voter.voter_id for voter in compile.decode(VotersRecord, 0, found.value).voters] if found else None

    # --- writing

    def lead(self, node_id: int, now_ms: int) -> None:
        """Begin a new epoch as its leader. Not synced: what is appended next is, and this before it."""
        voters = self._voters() or [node_id]
        if voters != [node_id]:
            raise JournalError(f"the metadata belongs to a quorum of nodes {voters}: this node cannot decide alone")
        self.epoch += 1
        replace_file(self._directory, QUORUM_STATE, self._quorum_state(node_id))
        batch = journal.leader_change(node_id, base_offset=self.end_offset, epoch=self.epoch, now_ms=now_ms)
        self._write([batch], now_ms)

    def _quorum_state(self, node_id: int) -> bytes:
        state: dict[str, Any] = {"leaderId": node_id, "leaderEpoch": self.epoch, "votedId": -1}
        if self.kraft_version > 0:
            state |= {"votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA", "data_version": 1}
        else:
            voters = {"appliedOffset": 0, "currentVoters": [{"voterId": node_id}], "data_version": 0}
            state = {"clusterId": "", **state, **voters}
        return json.dumps(state, separators=(",", ":")).encode()

    def append(self, entries: Sequence[Entry], now_ms: int, *, sync: bool = True) -> int:
        """Write entries that take effect together; the offset behind them. StorageError: nothing was written."""
        start = self.end_offset
        self._write(journal.atomic(entries, base_offset=start, epoch=self.epoch, now_ms=now_ms), now_ms)
        if sync:
            self.sync(start, now_ms)
        return self.end_offset

    def sync(self, start: int, now_ms: int) -> None:
        """Put everything on disk, or cut it back to `start`: a change that was refused must not come back."""
        try:
            self.log.flush()
        except StorageError as error:
            self._failure = error
            self.log.truncate_to(start, now_ms=now_ms)
            self._failure = None
            raise

    def _write(self, batches: Sequence[bytearray], now_ms: int) -> None:
        if self._failure is not None:
            raise StorageError(self._failure.errno, f"the metadata log is in doubt since: {self._failure}")
        data = batches[0] if len(batches) == 1 else bytearray().join(batches)
        self.log.append(data, self.epoch, now_ms, Origin.COORDINATOR)
        self._bytes_since_snapshot += len(data)
        self._last_timestamp = now_ms

    # --- snapshots

    @property
    def snapshot_due(self) -> bool:
        return self._bytes_since_snapshot >= self._config.bytes_between_snapshots

    @property
    def changed(self) -> bool:
        """Whether the newest snapshot lacks anything."""
        return not self._snapshots or self._snapshots[-1][0] < self.end_offset

    def write_snapshot(self, entries: Iterable[Entry], now_ms: int) -> None:
        """Write the whole state, and delete what it makes superfluous."""
        offset, epoch = self.end_offset, self.epoch
        pieces = journal.snapshot_batches(
            entries,
            epoch=epoch,
            last_timestamp=self._last_timestamp,
            now_ms=now_ms,
            quorum=[self._quorum[kind] for kind in sorted(self._quorum)],
        )
        replace_file(self._directory, _snapshot_name(offset, epoch), b"".join(pieces))
        self._snapshots.append((offset, epoch))
        self._bytes_since_snapshot = 0
        self.log.roll(now_ms)
        while len(self._snapshots) > SNAPSHOTS_KEPT:
            self._directory.remove(_snapshot_name(*self._snapshots.pop(0)))
        if len(self._snapshots) == SNAPSHOTS_KEPT:
            self.log.advance_log_start(self._snapshots[0][0])
            self.log.delete_old_segments(now_ms, offset)
            self.log.remove_deleted(now_ms)

    def close(self) -> None:
        self.log.close()


def _snapshot_id(name: str) -> tuple[int, int]:
    offset, epoch = name.removesuffix(".checkpoint").split("-")
    return int(offset), int(epoch)


def _snapshot_name(offset: int, epoch: int) -> str:
    return f"{offset:020d}-{epoch:010d}.checkpoint"
