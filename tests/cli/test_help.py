"""Help texts, the manual page and shell completion: all from the same declarations."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.cli.conftest import invoke

from ottla.cli.docs import every_command
from ottla.cli.man import render_man

COMMANDS = dict(every_command())


def test_every_option_and_argument_has_a_help_text_that_markup_leaves_alone() -> None:
    for path, command in COMMANDS.items():
        for text in (command.help, *(each.help for each in command.params)):
            assert text, path
            assert "<" not in text, f"{path}: the help shows nothing of <...>: {text}"


@pytest.mark.parametrize("path", COMMANDS)
def test_the_help_of_every_command(path: str) -> None:
    words = path.split()[1:]
    for option in ("-h", "--help"):
        run = invoke(*words, option)
        assert run.code == 0 and f"Usage: ottla {' '.join(words)}" in run.out.replace("root", "ottla") and run.err == ""


def test_the_format_of_json_lines_is_in_the_help() -> None:
    shown = " ".join(invoke("produce", "--help").out.split())
    assert '{"key": "k", "value": "v"}' in shown and "null is a tombstone" in shown


def test_the_manual_page_names_every_command_and_option() -> None:
    page = render_man()
    assert page.isascii()
    plain = page.replace("\\-", "-")
    for path, command in COMMANDS.items():
        assert f".SS \\fB{path}\\fR" in plain
        for each in command.params:
            assert all(f"\\fB{name}\\fR" in plain for name in each.opts if name.startswith("-"))


@pytest.mark.parametrize(
    ("words", "found"), [("ottla topi", "topic"), ("ottla topic cre", "create"), ("ottla start --lis", "--listen")]
)
def test_completion(words: str, found: str) -> None:
    env = {"_OTTLA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-m", "ottla"]
    done = subprocess.run(command, env=os.environ | env, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == [found]
