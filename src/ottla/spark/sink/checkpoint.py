"""What a sink, which has no Spark session, can find out about the checkpoint of its query: its name, and the offsets
that a batch reads.

Rules:
- Spark writes down the offsets of a batch before it runs the batch, and uses them again when it repeats the batch. If a
  batch number has other offsets than before, the checkpoint was restored from a backup.
- Python reads only local (or mounted) directories. The plans of other checkpoints are not known.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def one_spelling(location: str) -> str:
    """The location of a checkpoint in one spelling: the name of a sink must not change with an added slash."""
    scheme, colon, rest = location.partition(":")
    if colon and scheme.isalnum() and scheme.lower() != "file":
        return location.rstrip("/")
    return os.path.abspath("/" + rest.lstrip("/") if colon and scheme.lower() == "file" else location)


def plan_of(location: str | None, batch: int) -> str:
    """A hash of the offsets that this batch reads from its sources; empty if they cannot be found out."""
    place = "" if location is None else one_spelling(location)
    if not place.startswith("/"):
        return ""
    try:
        # The file has its version, then metadata (with the time of day), then a line per source.
        offsets = Path(place, "offsets", str(batch)).read_bytes().split(b"\n")[2:]
    except OSError:
        return ""
    return hashlib.sha256(b"\n".join(offsets)).hexdigest()[:16]
