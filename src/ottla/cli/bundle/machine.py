"""The part of a support bundle about this machine: versions, environment, files of nodes that run here."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.model.limits import BUNDLE_FILES_MAX, BUNDLE_LOG_BYTES_MAX, BUNDLE_LOGS_MAX
from ottla.model.version import VERSION
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.cli.bundle.archive import BundleArchive

# Variables whose values are shown; of others only the names are.
_SHOWN_VARIABLES = re.compile(r"(?:OTTLA|PYTHON|LC|KRB5|MALLOC|UV)_\w+|PYTHON\w+|LANG|TZ|TERM|COLUMNS|LINES|NO_COLOR")
_SEGMENT = re.compile(r"\d{20}\.log")
_LOG_NAMES = ("*.log", "*.log.[0-9]", "logs/*.log")
_META = "meta.properties"


class _LogEnd(NamedTuple):
    text: str
    left_out: str


def versions() -> dict[str, object]:
    """What runs here."""
    return {
        "ottla": VERSION,
        "python": sys.version,
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "packages": dict(sorted((each.name, each.version) for each in distributions())),
    }


def environment() -> dict[str, object]:
    """The variables that concern Ottla and Python, and the names of the others."""
    shown = {name: value for name, value in os.environ.items() if _SHOWN_VARIABLES.fullmatch(name)}
    return {"shown": dict(sorted(shown.items())), "others": sorted(set(os.environ) - set(shown))}


def check_files(logs: Sequence[Path], directories: Sequence[Path]) -> None:
    """Raise CommandError unless these are readable log files and directories."""
    for path in logs:
        if not path.is_file():
            what = "is no file" if path.exists() else "does not exist"
            raise CommandError(f"{path} {what}", "--log FILE names the log of a node, as its process writes it")
        if _SEGMENT.fullmatch(path.name):
            raise CommandError(
                f"{path} is a segment with records", "records are never packed up; --log FILE names the log of a node"
            )
        if not os.access(path, os.R_OK):
            raise CommandError(f"{path} cannot be read: Permission denied", "run as the user of the node")
    for path in directories:
        if not path.is_dir():
            what = "is not a directory" if path.exists() else "does not exist"
            raise CommandError(f"{path} {what}", "a data directory is an entry of log.dirs")


def add_log(archive: BundleArchive, path: Path, number: int) -> None:
    """Add the end of a log file."""
    what = f"the end of {path}"
    try:
        end = _end_of(path)
    except OSError as error:
        archive.miss(what, error.strerror or str(error))
        return
    if "\0" in end.text:
        archive.miss(what, "it is no text")
    else:
        archive.add_text(f"logs/{number}-{path.name}", end.text, what, end.left_out)


def _end_of(path: Path) -> _LogEnd:
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        skipped = max(size_bytes - BUNDLE_LOG_BYTES_MAX, 0)
        file.seek(skipped)
        data = file.read(BUNDLE_LOG_BYTES_MAX)
    if skipped:  # a part of a line could hold a secret whose name was cut off
        whole = data.partition(b"\n")[2]
        skipped += len(data) - len(whole)
        data = whole
    return _LogEnd(data.decode("utf-8", "replace"), f"the first {skipped} bytes" if skipped else "")


def add_directory(archive: BundleArchive, path: Path, number: int) -> None:
    """Add what a data directory is and which files it has, without records, and logs beside its partitions."""
    meta = path / _META
    if meta.is_file():
        archive.add_text(f"data/{number}/{_META}", _end_of(meta).text, f"{_META} of {path}")
    else:
        archive.miss(f"{_META} of {path}", "there is none")
    files = list(islice(_files(path), BUNDLE_FILES_MAX + 1))
    more = f"all beyond the first {BUNDLE_FILES_MAX} files" if len(files) > BUNDLE_FILES_MAX else ""
    archive.add_lines(f"data/{number}/files.jsonl", files[:BUNDLE_FILES_MAX], f"the files in {path}", more)
    total, _, free = shutil.disk_usage(path)
    archive.add_json(f"data/{number}/disk.json", {"total_bytes": total, "free_bytes": free}, f"the disk of {path}")


def logs_of(archive: BundleArchive, path: Path) -> list[Path]:
    """Log files of a node in its data directory, which are no segments; what is too many is noted as missing."""
    found = [
        each
        for pattern in _LOG_NAMES
        for each in sorted(path.glob(pattern))
        if each.is_file() and not _SEGMENT.fullmatch(each.name)
    ]
    if len(found) > BUNDLE_LOGS_MAX:
        archive.miss(
            f"{len(found) - BUNDLE_LOGS_MAX} more logs in {path}", f"of a directory there are {BUNDLE_LOGS_MAX}"
        )
    return found[:BUNDLE_LOGS_MAX]


def _files(path: Path) -> Iterator[dict[str, object]]:
    for directory, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = Path(directory, name)
            try:
                found = file.lstat()
            except OSError:
                continue
            yield {"file": str(file.relative_to(path)), "bytes": found.st_size, "changed_s": round(found.st_mtime)}
