"""Which leader epoch begins at which offset: replicas compare this to find where they diverge (KIP-101, KIP-279).

Rules:
- Epochs and start offsets both ascend strictly. An epoch that turns out to start at or below an earlier one replaces
  it.
- Kept in memory and in `leader-epoch-checkpoint`. The file is written at every change but not synced: after an unclean
  stop the epochs of everything above the recovery point are read from the batches again; the file is synced when the
  log is flushed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from ottla.log.files.checkpoint import LEADER_EPOCHS, CheckpointError, read_lines, write_lines
from ottla.log.files.disk import Directory, File, StorageError
from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch
from ottla.model.limits import EPOCHS_PER_PARTITION_MAX

UNDEFINED_OFFSET = -1


class Epochs:
    __slots__ = ("_directory", "_epochs", "_starts", "is_stale", "latest")

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._epochs: list[LeaderEpoch] = []
        self._starts: list[int] = []
        self.latest: LeaderEpoch = NO_LEADER_EPOCH
        self.is_stale = False  # the last write failed: the file is older than the state in memory

    def load(self) -> bool:
        """Read the checkpoint; False if it is damaged (then the epochs come from the batches)."""
        try:
            lines = list(read_lines(self._directory, LEADER_EPOCHS))
            entries = [(LeaderEpoch(int(epoch)), int(start)) for epoch, start in lines]
        except (CheckpointError, ValueError):
            return False
        for epoch, start in entries:
            self._assign(epoch, start)
        return True

    @property
    def entries(self) -> list[tuple[LeaderEpoch, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: LeaderEpoch, start_offset: int) -> None:
        """Begin `epoch` with the next batch, at `start_offset`."""
        before = self.entries
        if self._assign(epoch, start_offset):
            try:
                self.write()
            except StorageError:
                # The batch will not be appended either: undo the change, so that the next batch begins the epoch again.
                self._epochs = [known for known, _ in before]
                self._starts = [start for _, start in before]
                self.latest = self._epochs[-1] if before else NO_LEADER_EPOCH
                raise

    def rewind(self, offset: int) -> None:
        """Drop, during recovery, the epochs that begin at or above `offset`; they are read from the batches again."""
        keep = bisect_left(self._starts, offset)
        del self._epochs[keep:], self._starts[keep:]
        self.latest = self._epochs[-1] if keep else NO_LEADER_EPOCH

    def assign_quietly(self, epoch: LeaderEpoch, start_offset: int) -> None:
        """Begin an epoch during recovery without writing the file, which is written once at the end (`write`)."""
        if epoch != self.latest:
            self._assign(epoch, start_offset)

    def _assign(self, epoch: LeaderEpoch, start_offset: int) -> bool:
        if (
            epoch < 0
            or epoch == self.latest
            or (self._epochs and epoch < self.latest and start_offset > self._starts[-1])
        ):
            return False
        # Entries that this one overtakes never became part of the history.
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        if len(self._epochs) >= EPOCHS_PER_PARTITION_MAX:
            del self._epochs[0], self._starts[0]
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch
        return True

    def end_offset(self, epoch: LeaderEpoch, log_end: int) -> tuple[LeaderEpoch, int]:
        """Return (largest epoch at or below `epoch`, its end offset); (-1, -1) if unknown."""
        if epoch == NO_LEADER_EPOCH:
            return NO_LEADER_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end
        at = bisect_right(self._epochs, epoch)
        if at == len(self._epochs):
            # The epoch is newer than any known here.
            return NO_LEADER_EPOCH, UNDEFINED_OFFSET
        if at == 0:
            # The epoch is older than any known: all of it lies before the first known epoch.
            return epoch, self._starts[0]
        return self._epochs[at - 1], self._starts[at]

    def epoch_at(self, offset: int) -> LeaderEpoch:
        """Return the epoch of the batch that holds `offset`; -1 if unknown."""
        at = bisect_right(self._starts, offset)
        return self._epochs[at - 1] if at else NO_LEADER_EPOCH

    def truncate_from_end(self, offset: int) -> None:
        """Drop the epochs that begin at or above `offset`, where the log was truncated."""
        if self._starts and self._starts[-1] >= offset:
            self.rewind(offset)
            self.write()

    def truncate_from_start(self, offset: int) -> None:
        """Drop the epochs before the new log start `offset`; the epoch of that offset then starts there."""
        at = bisect_right(self._starts, offset)
        if at > 1 or (at == 1 and self._starts[0] < offset):
            del self._epochs[: at - 1], self._starts[: at - 1]
            self._starts[0] = offset
            self.write()

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()
        self.latest = NO_LEADER_EPOCH
        self.write()

    def file(self) -> File | None:
        """Return the checkpoint file, to sync it with a flush."""
        try:
            return self._directory.open(LEADER_EPOCHS) if self._epochs else None
        except FileNotFoundError:
            return None

    def write(self) -> None:
        self.is_stale = True
        lines = (f"{epoch} {start}" for epoch, start in zip(self._epochs, self._starts, strict=True))
        write_lines(self._directory, LEADER_EPOCHS, lines, sync=False)
        self.is_stale = False
