"""A small disk for a test: what only root may make."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import tools


@contextmanager
def small_disk(path: Path, size_bytes: int) -> Iterator[Path]:
    """A tmpfs of this size at a path; the test is skipped where it cannot be mounted."""
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(path)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        tools.require("a tmpfs cannot be mounted here (needs root)")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)
