"""The file of a password in place of a file of settings: it is refused, and nothing of it is shown."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import invoke

GOOD = (
    "process.roles=broker,controller\nnode.id=1\nlog.dirs={}\nlisteners=PLAINTEXT://127.0.0.1:0,C://127.0.0.1:9093\n"
    "controller.listener.names=C\nlistener.security.protocol.map=C:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
)


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery staple",
        "hunter2-is-my-password",
        "aHVudGVyMi1pcy1teS1wYXNzd29yZA==",
        "hunter2: battery",
        "=hunter2",
        "hunter2\\u00zz",
        "node-hunter2\nbattery=staple",
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        "security audit --config {file}",
        "doctor --config {file}",
        "start {file}",
        "format {file} --standalone",
        "format {good} --standalone --add-scram @{file}",
        "registry --config {file} -b 127.0.0.1:1 --listen 127.0.0.1:0",
        "support-bundle {folder}/b.tar.gz --config {file} -b 127.0.0.1:1",
        "topic list --command-config {file} -b 127.0.0.1:1",
    ],
)
def test_nothing_of_it_is_quoted(command: str, password: str, tmp_path: Path) -> None:
    file, good = tmp_path / "admin.secret", tmp_path / "server.properties"
    file.write_text(f"{password}\n")
    good.write_text(GOOD.format(tmp_path / "data"))
    run = invoke(*shlex.split(command.format(file=file, good=good, folder=tmp_path)))
    told = (run.out + run.err).replace(str(file), "")
    assert run.code in (1, 2) and "error: " in told and "hint: " in told
    for word in password.replace("=", " ").replace(":", " ").split():
        assert word not in told
