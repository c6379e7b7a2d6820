"""The command line as a manual page: `render_man` returns the contents of `docs/ottla.1`, which wheels install."""

from __future__ import annotations

import re
from typing import Any

from ottla.cli.docs import every_command
from ottla.model.version import VERSION

_INTRODUCTION = """\
Ottla is a Kafka-compatible log: a broker, a client, a schema registry and a Spark source in Python.
Any Kafka client talks to it. This command starts nodes, and looks at and changes clusters, ours or Apache Kafka's."""
_EXIT_STATUS = (
    ("0", "The command has done what was asked."),
    ("1", "It could not be done; one line on standard error says why, and a second one what would help."),
    ("2", "The command was not used as it must be; nothing was done."),
    ("3", "The command has an answer that is not good: acl explain says refused, doctor found warnings only."),
    ("75", "A pipeline failed with an error that may pass: start it again later."),
    ("130", "The command was interrupted."),
)
_ENVIRONMENT = (
    ("OTTLA_BOOTSTRAP", "Broker addresses, HOST:PORT[,HOST:PORT...], as of \\-\\-bootstrap."),
    ("OTTLA_REGISTRY", "URL of the schema registry, as of \\-\\-registry."),
    ("OTTLA_PROFILE", "Profile of ~/.config/ottla/profiles.toml, as of \\-\\-profile."),
    ("NO_COLOR", "Anything here turns colours off."),
)


def render_man() -> str:
    """Every command with its arguments and options, read from the application itself, as roff."""
    lines = [
        '.\\" Made by `make docs` from the CLI itself; do not edit.',
        f'.TH OTTLA 1 "" "Ottla {VERSION}" "User Commands"',
        ".SH NAME",
        "ottla \\- a Kafka-compatible log in Python",
        ".SH SYNOPSIS",
        ".B ottla",
        ".I COMMAND",
        "[\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]",
        ".SH DESCRIPTION",
        _INTRODUCTION,
        ".PP",
        "\\fBottla\\fR \\fICOMMAND\\fR \\fB\\-\\-help\\fR shows the help of one command.",
        ".SH COMMANDS",
    ]
    for path, command in every_command():
        lines += _command(path, command)
    lines.append(".SH ENVIRONMENT")
    for name, meaning in _ENVIRONMENT:
        lines += [".TP", f".B {name}", meaning]
    lines.append(".SH EXIT STATUS")
    for name, meaning in _EXIT_STATUS:
        lines += [".TP", f".B {name}", meaning]
    return "\n".join(lines) + "\n"


def _command(path: str, command: Any) -> list[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    words = "".join(f" \\fI{_escaped(each.name.upper())}\\fR" for each in arguments)
    lines = [f".SS \\fB{_escaped(path)}\\fR{words}", _text(command.help)]
    for each in command.params:
        if each.param_type_name == "argument":
            lines += [".TP", f".I {_escaped(each.name.upper())}"]
        else:
            names = ", ".join(f"\\fB{_escaped(name)}\\fR" for name in (*each.opts, *each.secondary_opts))
            value = "" if each.is_flag else f" \\fI{_escaped((each.name or '').upper())}\\fR"
            lines += [".TP", f"{names}{value}"]
        lines.append(_text(each.help))
    return lines


def _text(help_text: str | None) -> str:
    """The paragraphs of a help text as roff. A line that begins with a control character is escaped."""
    paragraphs = [" ".join(each.split()) for each in re.split(r"\n\s*\n", help_text or "")]
    return "\n.PP\n".join(_escaped(each) for each in paragraphs if each)


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "").replace("…", "...")
    escaped = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
