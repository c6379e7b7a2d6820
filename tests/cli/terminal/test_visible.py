"""Records whose bytes would steer a terminal: on one they are shown as escapes, in a pipe they stay as they are."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
from rich.console import Console

from ottla.cli.registry import schema_text
from ottla.cli.terminal import output
from ottla.cli.terminal.visible import visible, visible_json
from ottla.client.blocking.blocking import Blocking
from ottla.testing.broker import EmbeddedBroker

TITLE = "\x1b]0;owned\x07"  # sets the title of the window
ERASE = "\x1b[2J\x9b1mx\r\x7f"
VALUE = f"a{TITLE}b\tc\n{ERASE}"
SHOWN = "a\\x1b]0;owned\\x07b\tc\n\\x1b[2J\\x9b1mx\\x0d\\x7f"


@pytest.fixture
def steering(ottla_broker: EmbeddedBroker) -> EmbeddedBroker:
    with Blocking(ottla_broker.bootstrap) as client:
        client.send("t", VALUE.encode(), TITLE.encode(), headers=[(TITLE, ERASE.encode())])
    return ottla_broker


def on_a_terminal(broker: EmbeddedBroker, *words: str) -> str:
    """What a command writes to a terminal as its standard output."""
    ours, its = os.openpty()
    command = [sys.executable, "-m", "ottla", *words, "-b", broker.bootstrap]
    try:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=its, stderr=subprocess.PIPE) as process:
            os.close(its)
            found = b""
            while part := _read(ours):
                found += part
            assert process.stderr is not None
            assert process.wait(120) == 0, process.stderr.read()
    finally:
        os.close(ours)
    return found.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # Linux: nobody has the other end any more
        return b""


def in_a_pipe(broker: EmbeddedBroker, *words: str) -> bytes:
    command = [sys.executable, "-m", "ottla", *words, "-b", broker.bootstrap]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=120, check=True).stdout


def test_consume(steering: EmbeddedBroker) -> None:
    text = on_a_terminal(steering, "consume", "t")
    assert SHOWN in text and TITLE not in text and ERASE[:4] not in text
    assert "\x1b[36mt-0@0\x1b[0m" in text, "our own colours stay"
    assert on_a_terminal(steering, "consume", "t", "-t", "{key} {value} {headers}\\n") == (
        f"\\x1b]0;owned\\x07 {SHOWN} \\x1b]0;owned\\x07=\\x1b[2J\\x9b1mx\\x0d\\x7f\n"
    )
    shown = on_a_terminal(steering, "consume", "t", "-F", "json")
    assert json.loads(shown)["value"] == VALUE and visible(shown) == shown
    dump = on_a_terminal(steering, "consume", "t", "-F", "hex")
    assert visible(dump) == dump and "1b 5d 30 3b" in dump
    assert TITLE in on_a_terminal(steering, "consume", "t", "-F", "raw"), "that is what raw means"


def test_a_pipe_gets_the_bytes(steering: EmbeddedBroker) -> None:
    assert in_a_pipe(steering, "consume", "t", "-F", "raw") == VALUE.encode() + b"\n"
    assert in_a_pipe(steering, "consume", "t", "-t", "{value}") == VALUE.encode()
    assert VALUE.encode() in in_a_pipe(steering, "consume", "t")
    assert json.loads(in_a_pipe(steering, "consume", "t", "-F", "json"))["value"] == VALUE


def test_what_a_command_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal in (True, False):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=is_terminal, highlight=False, soft_wrap=True)
        monkeypatch.setattr(output, "err", lambda console=console: console)
        output.done(f"added {TITLE}")
        output.note(f"left {TITLE}")
        assert (TITLE[:-1] in stream.getvalue()) is not is_terminal, "Rich itself drops the bell"
        assert ("\\x1b]0;owned\\x07" in stream.getvalue()) is is_terminal


def test_a_table(steering: EmbeddedBroker) -> None:
    query = "select value from topic('t')"
    table = on_a_terminal(steering, "sql", query, "--registry", "off")
    assert TITLE not in table and "\\x1b]0;owned\\x07" in table
    named = on_a_terminal(steering, "sql", f'select 1 as "[bold][/x]{TITLE}"', "--registry", "off")
    assert "[bold][/x]\\x1b]0;owned\\x07" in named and TITLE not in named
    lines = on_a_terminal(steering, "sql", query, "--registry", "off", "--json")
    assert json.loads(lines) == {"value": VALUE} and visible(lines) == lines


def test_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f'syntax = "proto3"; // {TITLE}\nmessage M {{}}'
    for is_terminal in (True, False):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=is_terminal, highlight=False, soft_wrap=True, no_color=True)
        monkeypatch.setattr(output, "out", lambda console=console: console)
        if is_terminal:  # else the text goes to `print`
            schema_text.print_schema("PROTOBUF", text)
        schema_text.print_diff([f"+ {TITLE}"])
        assert (TITLE[:-1] in stream.getvalue()) is not is_terminal
        assert ("\\x1b]0;owned" in stream.getvalue()) is is_terminal


def test_what_is_escaped() -> None:
    every = "".join(map(chr, range(0x200)))
    kept = {letter for letter in every if visible(letter) == letter}
    assert set(every) - kept == {chr(code) for code in (*range(32), *range(0x7F, 0xA0))} - set("\n\t")
    assert json.loads(visible_json(json.dumps(every, ensure_ascii=False))) == every
