"""Every command over a table of inputs that cannot work: one line says what is wrong, another what to do.

No command shows a traceback for what a user can cause, and none ends with an exit status of 0. Wrong usage is 2,
whatever else cannot be done is 1.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.bad_inputs import NOBODY, REFUSED, USAGE, VALID
from tests.cli.bad_security_inputs import Bad
from tests.cli.conftest import Run, invoke

from ottla.cli.docs import every_command
from ottla.testing.broker import EmbeddedBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("node") / "data") as running:
        env = {"OTTLA_BOOTSTRAP": running.bootstrap, "OTTLA_REGISTRY": running.registry.url}
        assert invoke("topic", "create", "t", "-p", "2", env=env).code == 0
        schema = '{"type": "record", "name": "S", "fields": []}'
        assert invoke("schema", "register", "s", "-", stdin=schema, env=env).code == 0
        yield running


def run(bad: Bad | str, directory: Path, env: dict[str, str]) -> Run:
    words, stdin = (bad, b"") if isinstance(bad, str) else (bad.words, bad.stdin)
    return invoke(*(_path(word, directory) for word in shlex.split(words)), stdin=stdin, env=env)


def _path(word: str, directory: Path) -> str:
    """`{name}` is a path below the directory, with the content that the name promises."""
    if not word.startswith("{") or "}" not in word[2:]:
        return word
    name, _, rest = word[1:].partition("}")
    path = directory / name
    if name == "full":
        path.mkdir(exist_ok=True)
        (path / "photo.jpg").write_text("mine")
    elif name == "file":
        path.write_text("nothing\n")
    elif name.startswith("binary"):
        path.write_bytes(os.urandom(64) + b"\x00\xff\xfe")
    elif name == "client.properties":
        path.write_text("bootstrap.servers=127.0.0.1:1\nsecurity.protocol=SSL\nssl.truststore.type=PEM\n")
    elif name == "colonless.properties":
        path.write_text("schema.registry.url=http://127.0.0.1:1\nbasic.auth.user.info=alice\n")
        path.chmod(0o600)
    elif name == "good.avsc":
        path.write_text(json.dumps({"type": "record", "name": "S", "fields": []}))
    elif name == "good.properties":
        path.write_text(
            f"process.roles=broker,controller\nnode.id=1\nlog.dirs={directory / 'formatted'}\n"
            "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        )
    return f"{path}{rest}"


def check(found: Run, code: int, told: str) -> None:
    """One line for the error (or for each partition that failed), and behind it a line with a hint."""
    lines = [line for line in found.err.splitlines() if not line.startswith("warning: ")]
    assert found.code == code, f"exit code {found.code}\n{found.out}\n{found.err}"
    assert "Traceback" not in found.err
    while lines and not lines[0].startswith("error: "):
        del lines[0]  # what was planned, or said before
    assert lines and len(lines) % 2 == 0, found.err
    assert all(line.startswith("error: ") for line in lines[::2]) and told in lines[0], found.err
    assert all(line.startswith("hint: ") for line in lines[1::2]), found.err


def test_every_command_is_in_the_table() -> None:
    commands = [path.removeprefix("ottla ") for path, _ in every_command()]
    assert list(VALID) == commands or set(VALID) == set(commands)
    first_words = [tuple(shlex.split(bad.words)) for bad in (*USAGE, *REFUSED)]
    for command, words in VALID.items():
        count = command.count(" ") + 1
        tried = [each for each in first_words if each[:count] == tuple(command.split())]
        assert tried or words is not None, f"nothing is tried with {command}"
    assert len(USAGE) + len(REFUSED) + 2 * sum(words is not None for words in VALID.values()) > 250


@pytest.mark.parametrize("bad", USAGE, ids=lambda bad: bad.words)
def test_usage(bad: Bad, tmp_path: Path) -> None:
    found = run(bad, tmp_path, {"OTTLA_BOOTSTRAP": NOBODY})
    if bad.words == "topic":
        assert "Usage: " in found.out + found.err
    else:
        check(found, bad.code, bad.told)


@pytest.mark.parametrize("bad", REFUSED, ids=lambda bad: f"{bad.words} {bad.stdin}")
def test_refused(bad: Bad, tmp_path: Path, broker: EmbeddedBroker) -> None:
    env = {"OTTLA_BOOTSTRAP": broker.bootstrap, "OTTLA_REGISTRY": broker.registry.url}
    check(run(bad, tmp_path, env), bad.code, bad.told)


@pytest.mark.parametrize("words", [words for words in VALID.values() if words is not None])
def test_nobody_answers_and_no_such_address(words: str, tmp_path: Path) -> None:
    env = {"OTTLA_BOOTSTRAP": NOBODY, "OTTLA_REGISTRY": f"http://{NOBODY}"}
    check(run(words, tmp_path, env), 1, NOBODY)
    option = "-u ftp://x" if words.startswith("schema") else "-b :x"
    check(run(f"{words} {option}", tmp_path, env), 2, "--registry" if words.startswith("schema") else "--bootstrap")
