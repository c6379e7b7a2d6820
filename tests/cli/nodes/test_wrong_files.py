"""`ottla start` and others with files that are none of settings: one line, a hint, nothing started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.conftest import invoke

from ottla.cli.nodes import start
from ottla.model.limits import SETTINGS_FILE_BYTES_MAX


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a kafka dir\n", "line 1 is no setting: it is not NAME=VALUE"),
        (b"\x7fELF\x00", "line 1 is no text: it holds the byte 0x7f"),
        (b"", "sets nothing"),
        (b"127.0.0.1\tlocalhost\n", "sets nothing that a node knows"),
        (b"#" * (SETTINGS_FILE_BYTES_MAX + 1), f"larger than {SETTINGS_FILE_BYTES_MAX} bytes"),
    ],
)
def test_the_content(content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.properties"
    file.write_bytes(content)
    assert start.main([str(file)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[1].startswith("hint: ")
    assert lines[0].startswith(f"error: {file}") and message in lines[0]


def test_a_file_without_a_single_known_setting_starts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts, data = tmp_path / "hosts", tmp_path / "data"
    hosts.write_text("127.0.0.1\tlocalhost\n")
    assert start.main([str(hosts), "--data", str(data), "--set", "node.id=1"]) == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert error == f"error: {hosts} sets nothing that a node knows" and hint.startswith("hint: ")
    assert not data.exists()


def test_what_keeps_a_node_from_starting_is_not_called_without_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", "--set", "authorizer.class.name=A"]
    assert start.main([*options, "--set", "metric.reporters=B"]) == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: authorizer.class.name is A, but the only authorizer here is")
    assert hint.startswith("hint: docs/settings.md")


@pytest.mark.parametrize("kind", ["directory", "missing", "empty name", "unreadable"])
def test_the_path(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = {"directory": str(tmp_path), "empty name": ""}.get(kind, str(tmp_path / "f"))
    if kind == "unreadable":
        os.symlink(path, path)  # a loop, which root cannot read either
    assert start.main(["--config", path]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[0].startswith("error: ") and lines[1].startswith("hint: ")


def test_the_same_for_format_and_for_a_local_cluster(tmp_path: Path) -> None:
    file = tmp_path / "node-1.properties"
    file.write_text("node.id=1\nhello world\n")
    formatted = invoke("format", str(file), "--cluster-id", "4L6g3nShT-eMCtK--X86sw", "--standalone")
    added = invoke("cluster", "add-broker", "--data", str(tmp_path))
    for run in (formatted, added):
        assert run.code == 1
        assert run.err.splitlines()[0] == f"error: {file}: line 2 is no setting: it is not NAME=VALUE"
