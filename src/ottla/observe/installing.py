"""How to install an extra of Ottla, for messages that say that a package is missing.

The command that works depends on where this copy comes from: the package index, a checkout, or an archive. pip notes
the origin beside the installed package (`direct_url.json`, PEP 610); from the index there is no such note.
"""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME = "ottla"


def install_command(extra: str) -> str:
    """Return the `pip install …` command that installs the extra for this copy."""
    try:
        note = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return _from_checkout(extra) or _from_index(extra)
    return _from_index(extra) if note is None else _from_origin(json.loads(note), extra)


def _from_origin(origin: dict[str, object], extra: str) -> str:
    url = str(origin.get("url", ""))
    directory = origin.get("dir_info")
    if isinstance(directory, dict):
        editable = "-e " if directory.get("editable") else ""
        return f"pip install {editable}'{unquote(urlsplit(url).path)}[{extra}]'"
    repository = origin.get("vcs_info")
    if isinstance(repository, dict):
        url = f"{repository.get('vcs', 'git')}+{url}"
    return f"pip install '{NAME}[{extra}] @ {url}'"


def _from_checkout(extra: str) -> str | None:
    """Return the command for a package that is not installed but imported from a checkout's `src`, else None."""
    root = Path(__file__).parents[3]
    return f"pip install -e '{root}[{extra}]'" if (root / "pyproject.toml").is_file() else None


def _from_index(extra: str) -> str:
    return f"pip install '{NAME}[{extra}]'"
