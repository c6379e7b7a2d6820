"""What a sink, which has no session of Spark, knows of the checkpoint of its query: how it is named."""

from __future__ import annotations

import os


def one_spelling(location: str) -> str:
    """The same for a place however it is written: what names a sink must not change with a slash."""
    scheme, colon, rest = location.partition(":")
    if colon and scheme.isalnum() and scheme.lower() != "file":
        return location.rstrip("/")
    return os.path.abspath("/" + rest.lstrip("/") if colon and scheme.lower() == "file" else location)
