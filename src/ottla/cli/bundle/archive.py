"""The archive: a .tar.gz that only its owner can read, bounded as a whole and in each member, with a manifest.

It appears under its name when it is complete, and never replaces another file. Each member is free of secrets: texts
go through the redaction here, so that no caller can forget it.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ottla.cli.bundle.plain_values import PlainValues
from ottla.cli.bundle.redaction import Redaction
from ottla.cli.terminal.safe_files import SECRET_MODE
from ottla.model.limits import BUNDLE_BYTES_MAX, BUNDLE_MEMBER_BYTES_MAX
from ottla.model.version import VERSION
from ottla.operations.errors import CommandError

FORMAT = 1
MANIFEST = "MANIFEST.json"
_EXISTS_HINT = "name another file, or move that one away"
_ELSEWHERE_HINT = "name a file in another folder: `ottla support-bundle DIR/NAME.tar.gz`"


class BundleMember(NamedTuple):
    """One file of the archive; `left_out` says what the bounds left out of it."""

    name: str
    size_bytes: int
    what: str
    left_out: str = ""


class BundleArchive:
    """Takes the members of a bundle; `missing` is what could not be read."""

    def __init__(self, tar: tarfile.TarFile, folder: str, redaction: Redaction) -> None:
        self._tar = tar
        self._folder = folder
        self._began_s = time.time()
        self.redaction = redaction
        self._plain = PlainValues(redaction)
        self.members: list[BundleMember] = []
        self.missing: list[dict[str, str]] = []

    @property
    def left_bytes(self) -> int:
        """What the next member may have."""
        return min(BUNDLE_BYTES_MAX - sum(each.size_bytes for each in self.members), BUNDLE_MEMBER_BYTES_MAX)

    def miss(self, what: str, reason: str) -> None:
        """Note that something could not be read."""
        self.missing.append({"what": self.redaction.text(what), "reason": self.redaction.text(reason)})

    def add_text(self, name: str, text: str, what: str, left_out: str = "") -> None:
        """Add a text, in which lines of JSON stay such; of a long one, the end, from the beginning of a line on."""
        data = self._without_secrets(text).encode("utf-8", "replace")
        if len(data) > self.left_bytes:
            kept = data[len(data) - self.left_bytes :] if self.left_bytes > 0 else b""
            kept = kept.partition(b"\n")[2]
            left_out = f"the first {len(data) - len(kept)} bytes"
            data = kept
        self._write(name, data, what, left_out)

    def _without_secrets(self, text: str) -> str:
        parts: list[str] = []
        for is_json, lines in groupby(text.splitlines(keepends=True), key=lambda line: line.startswith("{")):
            if is_json:
                parts += [self._json_line(line) for line in lines]
            else:
                parts.append(self.redaction.text("".join(lines)))
        return "".join(parts)

    def _json_line(self, line: str) -> str:
        try:
            return json.dumps(self._plain.of(json.loads(line)), ensure_ascii=False) + "\n"
        except (ValueError, RecursionError):
            return self.redaction.text(line)

    def add_json(self, name: str, value: object, what: str) -> None:
        """Add one value."""
        data = json.dumps(self._plain.of(value), indent=1, ensure_ascii=False).encode("utf-8", "replace")
        if len(data) > self.left_bytes:
            self.miss(what, "there was no room for it")
        else:
            self._write(name, data, what)

    def add_lines(self, name: str, values: Iterable[object], what: str, left_out: str = "") -> None:
        """Add values, one in each line, as far as there is room; `left_out` is what `values` do not have."""
        lines: list[bytes] = []
        size_bytes = left = 0
        for value in values:
            line = json.dumps(self._plain.of(value), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            if left or size_bytes + len(line) > self.left_bytes:
                left += 1
            else:
                lines.append(line)
                size_bytes += len(line)
        self._write(name, b"".join(lines), what, f"the last {left} of {left + len(lines)} lines" if left else left_out)

    def _write(self, name: str, data: bytes, what: str, left_out: str = "") -> None:
        self._put(name, data)
        self.members.append(BundleMember(name, len(data), what, left_out))

    def _put(self, name: str, data: bytes) -> None:
        info = tarfile.TarInfo(f"{self._folder}/{name}")
        info.size, info.mode, info.mtime = len(data), SECRET_MODE, int(self._began_s)
        self._tar.addfile(info, io.BytesIO(data))

    def manifest(self) -> dict[str, object]:
        """What is in the archive, and what is not."""
        return {
            "format": FORMAT,
            "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._began_s)),
            "made_by": f"ottla {VERSION}",
            "bytes_max": BUNDLE_BYTES_MAX,
            "member_bytes_max": BUNDLE_MEMBER_BYTES_MAX,
            "members": [each._asdict() for each in self.members],
            "missing": self.missing,
        }

    def end(self) -> None:
        """Add the manifest; it is not counted, so that there is always room for it."""
        self._put(MANIFEST, json.dumps(self.manifest(), indent=1, ensure_ascii=False).encode("utf-8", "replace"))


@contextmanager
def written_bundle(path: Path, redaction: Redaction) -> Iterator[BundleArchive]:
    """Write an archive that appears when the block ends. Raises CommandError if there is a file of this name, or if
    none can be made.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        is_there = path.exists() or path.is_symlink()
        descriptor = -1 if is_there else os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET_MODE)
    except OSError as error:
        raise _unwritable(path, error) from None
    if is_there:
        raise CommandError(f"{path}: there already, and not overwritten", _EXISTS_HINT)
    try:
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
            archive = BundleArchive(tar, path.name.removesuffix(".tar.gz"), redaction)
            yield archive
            archive.end()
        try:
            os.link(draft, path)  # unlike a rename, it replaces nothing
        except FileExistsError:
            raise CommandError(f"{path}: there already, and not overwritten", _EXISTS_HINT) from None
    finally:
        draft.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> CommandError:
    """The error for a path at which no file can be made."""
    folder = path.parent
    match error:
        case FileNotFoundError():
            why, hint = f"there is no folder {folder}", f"`mkdir -p {folder}` makes it"
        case NotADirectoryError():
            why, hint = f"{folder} is no folder, but a file", _ELSEWHERE_HINT
        case PermissionError():
            why, hint = f"this user may not write in {folder}", _ELSEWHERE_HINT
        case _:
            why, hint = str(error.strerror), _ELSEWHERE_HINT
    return CommandError(f"{path} cannot be written: {why}", hint)
