"""A data directory as the doctor sees it, and the declared checks of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ottla.log.files.disk import Directory
from ottla.log.offline import dump
from ottla.operations.doctor.check import Checks, UnseenError
from ottla.server.ports.os_disk import OsDisk

DATA = Checks["DirectorySeen"](
    "A data directory",
    "Made for each `--data`. While a node uses it, the checks of files that it is changing are left out.",
)


@dataclass(frozen=True, slots=True)
class DirectorySeen:
    """`node_id` is that of the configuration given beside it; `all` are the data directories of the same node."""

    path: Path
    is_in_use: bool
    all: tuple[Path, ...]
    node_id: int | None = None

    @property
    def disk(self) -> OsDisk:
        return OsDisk(str(self.path))

    def partitions(self) -> list[str]:
        """The directories of partitions."""
        return dump.partition_directories(self.disk)

    def files_of(self, partition: str) -> dump.PartitionFiles:
        return dump.partition_files(Directory(self.disk, partition))

    def check_stopped(self) -> None:
        """Raise UnseenError while a node uses the directory."""
        if self.is_in_use:
            raise UnseenError("a node uses the directory and is changing these files")
