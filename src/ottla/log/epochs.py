"""Which leader epoch begins at which offset: what replicas compare to find where they diverge (KIP-101, KIP-279).

Rules:
- Epochs and start offsets both ascend strictly. An epoch that turns out to start at or below an earlier one replaces
  it.
- Kept in memory and in `leader-epoch-checkpoint`. The file is written at every change but not synced: after an unclean
  stop the epochs of everything above the recovery point are read from the batches again; `sync` comes with the log's
  flush.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from ottla.log.files.checkpoint import LEADER_EPOCHS, CheckpointError, read_lines, write_lines
from ottla.log.files.disk import Directory, File, StorageError
from ottla.model.limits import EPOCHS_PER_PARTITION_MAX

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class Epochs:
    __slots__ = ("_directory", "_epochs", "_starts", "is_stale", "latest")

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = UNDEFINED_EPOCH
        self.is_stale = False  # the last write failed: the file is behind what is known here

    def load(self) -> bool:
        """Read the checkpoint; False if it is damaged (then the epochs come from the batches)."""
        try:
            entries = [(int(epoch), int(start)) for epoch, start in read_lines(self._directory, LEADER_EPOCHS)]
        except (CheckpointError, ValueError):
            return False
        for epoch, start in entries:
            self._assign(epoch, start)
        return True

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """The next batch, at `start_offset`, is the first of `epoch`."""
        before = self.entries
        if self._assign(epoch, start_offset):
            try:
                self.write()
            except StorageError:
                # The batch will not be appended either: as if nobody had asked, so that the next one asks again.
                self._epochs = [known for known, _ in before]
                self._starts = [start for _, start in before]
                self.latest = self._epochs[-1] if before else UNDEFINED_EPOCH
                raise

    def rewind(self, offset: int) -> None:
        """While recovering: what begins at or above `offset` is about to be read from the batches again."""
        keep = bisect_left(self._starts, offset)
        del self._epochs[keep:], self._starts[keep:]
        self.latest = self._epochs[-1] if keep else UNDEFINED_EPOCH

    def assign_quietly(self, epoch: int, start_offset: int) -> None:
        """While recovering: the file is written once at the end (`write`)."""
        if epoch != self.latest:
            self._assign(epoch, start_offset)

    def _assign(self, epoch: int, start_offset: int) -> bool:
        if (
            epoch < 0
            or epoch == self.latest
            or (self._epochs and epoch < self.latest and start_offset > self._starts[-1])
        ):
            return False
        # Entries this one overtakes never became part of the history.
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        if len(self._epochs) >= EPOCHS_PER_PARTITION_MAX:
            del self._epochs[0], self._starts[0]
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch
        return True

    def end_offset(self, epoch: int, log_end: int) -> tuple[int, int]:
        """(largest epoch at or below `epoch`, where it ends); (-1, -1) if the question cannot be answered."""
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end
        at = bisect_right(self._epochs, epoch)
        if at == len(self._epochs):
            # Newer than anything known here.
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if at == 0:
            # Older than anything known: all of it lies before the first known epoch.
            return epoch, self._starts[0]
        return self._epochs[at - 1], self._starts[at]

    def epoch_at(self, offset: int) -> int:
        """The epoch of the batch that holds `offset`; -1 if unknown."""
        at = bisect_right(self._starts, offset)
        return self._epochs[at - 1] if at else UNDEFINED_EPOCH

    def truncate_from_end(self, offset: int) -> None:
        """The log was cut at `offset`."""
        if self._starts and self._starts[-1] >= offset:
            self.rewind(offset)
            self.write()

    def truncate_from_start(self, offset: int) -> None:
        """The log now starts at `offset`: the epoch it lies in starts there, older ones go."""
        at = bisect_right(self._starts, offset)
        if at > 1 or (at == 1 and self._starts[0] < offset):
            del self._epochs[: at - 1], self._starts[: at - 1]
            self._starts[0] = offset
            self.write()

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()
        self.latest = UNDEFINED_EPOCH
        self.write()

    def file(self) -> File | None:
        """The checkpoint, for syncing with a flush."""
        try:
            return self._directory.open(LEADER_EPOCHS) if self._epochs else None
        except FileNotFoundError:
            return None

    def write(self) -> None:
        self.is_stale = True
        lines = (f"{epoch} {start}" for epoch, start in zip(self._epochs, self._starts, strict=True))
        write_lines(self._directory, LEADER_EPOCHS, lines, sync=False)
        self.is_stale = False
