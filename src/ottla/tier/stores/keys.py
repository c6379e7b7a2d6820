"""Keys of objects: which there may be. They are safe as S3's keys, blob names, file names and parts of URLs."""

from __future__ import annotations

import re

from ottla.model import limits

UPLOADS = ".uploads"
_KEY = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*", re.ASCII)


def key_problem(key: str) -> str | None:
    """Return what is wrong with a key, or None."""
    if _KEY.fullmatch(key) is None:
        return "has other characters than letters, digits, '.', '_', '-' and '/' between names"
    if len(key) > limits.STORE_KEY_BYTES_MAX:
        return f"is longer than {limits.STORE_KEY_BYTES_MAX} bytes"
    names = key.split("/")
    if names[0] == UPLOADS:
        return f"begins with {UPLOADS}, where a directory has what is being put"
    if any(name in (".", "..") for name in names):
        return "has '.' or '..' as a name"
    if max(map(len, names)) > limits.STORE_KEY_PART_BYTES_MAX:
        return f"has a name longer than {limits.STORE_KEY_PART_BYTES_MAX} bytes"
    return None


def check_key(key: str) -> None:
    """Raise ValueError for a key that no store may get: the caller made it, so it is a fault of ours."""
    if (problem := key_problem(key)) is not None:
        raise ValueError(f"the key {key!r} {problem}")


def check_folder(folder: str) -> None:
    """A folder ends with a slash; the empty one is the whole store."""
    if folder and (not folder.endswith("/") or key_problem(folder[:-1]) is not None):
        raise ValueError(f"{folder!r} is no folder of keys")
