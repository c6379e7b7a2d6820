"""The command that installs an extra, by where this copy of Ottla comes from."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import pytest

from ottla.observe import installing


class Distribution:
    def __init__(self, note: Any) -> None:
        self._note = note

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._note is None else json.dumps(self._note)


@pytest.mark.parametrize(
    ("note", "command"),
    [
        (None, "pip install 'ottla[spark]'"),
        ({"url": "file:///a%20b/c", "dir_info": {"editable": True}}, "pip install -e '/a b/c[spark]'"),
        ({"url": "file:///a/c", "dir_info": {}}, "pip install '/a/c[spark]'"),
        ({"url": "https://h/r", "vcs_info": {"vcs": "git"}}, "pip install 'ottla[spark] @ git+https://h/r'"),
        ({"url": "file:///o.whl", "archive_info": {}}, "pip install 'ottla[spark] @ file:///o.whl'"),
    ],
)
def test_by_origin(monkeypatch: pytest.MonkeyPatch, note: Any, command: str) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda name: Distribution(note))
    assert installing.install_command("spark") == command


def test_not_installed_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    command = installing.install_command("sql")
    assert command.startswith("pip install -e '/") and command.endswith("[sql]'"), "the checkout of these tests"
