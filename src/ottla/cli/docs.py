"""The command line as a Markdown page: `render` returns the contents of `docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any


def render() -> str:
    """Every command with its arguments and options, read from the application itself."""
    root = _root()
    lines = [
        "# The command line",
        "",
        "<!-- Made by `make docs` from the CLI itself; do not edit. -->",
        "",
        root.help or "",
        "",
        "`ottla --install-completion` completes commands and options in your shell; `man ottla` shows this page.",
        "",
        "Every listing has `--json`. Commands that talk to a broker take `--bootstrap HOST:PORT` (or the environment",
        "variable `OTTLA_BOOTSTRAP`). `--profile NAME` (or `OTTLA_PROFILE`) takes addresses and security from a",
        "profile of `~/.config/ottla/profiles.toml`, `--command-config FILE` from a file of Kafka's client",
        "properties, in which names of other clients' settings are ignored without a warning; both stand before or",
        "behind the command. Exit codes: 0 done, 1 it could not be done (one line says why), 2 wrong usage, 130",
        "interrupted; 3 is an answer: `acl explain` says refused, `doctor` found warnings only.",
        "A command whose output nobody reads any more (`| head`) finishes what it changes, and its exit code says how",
        "that went; those that only read and could go on for long (`consume`, `share consume`, `log dump`) end with 0.",
        "On a terminal, control characters in records and names are shown as escapes such as `\\x1b` (`--format raw`",
        "writes them as they are); in a pipe or file nothing is changed.",
    ]
    for name, command in root.commands.items():
        if hasattr(command, "commands"):
            lines += ["", f"## ottla {name}", "", command.help or ""]
            for path, each in every_command():
                if path.startswith(f"ottla {name} "):
                    lines += _command(path, each, "###")
        else:
            lines += _command(f"ottla {name}", command, "##")
    return "\n".join(lines).rstrip() + "\n"


def every_command() -> Iterator[tuple[str, Any]]:
    """All commands with their full names, in the order of the help."""
    waiting = [("ottla", _root())]
    while waiting:
        path, command = waiting.pop()
        if hasattr(command, "commands"):
            waiting += [(f"{path} {name}", each) for name, each in reversed(command.commands.items())]
        else:
            yield path, command


def _root() -> Any:
    from typer.main import get_command

    from ottla.cli.app import app

    return get_command(app)


def _command(path: str, command: Any, heading: str) -> list[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join([path, *(_usage(each) for each in arguments), *(["[options]"] if options else [])])
    lines = ["", f"{heading} {path}", "", f"`{usage}`", "", " ".join((command.help or "").split()), ""]
    if not arguments and not options:
        return lines[:-1]
    lines += ["| | | default |", "|---|---|---|"]
    for each in arguments:
        lines.append(f"| `{each.name.upper()}` | {_cell(each.help)} | {_default(each)} |")
    for each in options:
        names = ", ".join(f"`{name}`" for name in each.opts)
        lines.append(f"| {names} | {_cell(each.help)}{_choices(each)} | {_default(each)} |")
    return lines


def _usage(argument: Any) -> str:
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _default(parameter: Any) -> str:
    default = parameter.default
    if parameter.required:
        return "required"
    if default is None or default is False or default == [] or default == ():
        return ""
    return f"`{getattr(default, 'value', default)}`"


def _choices(option: Any) -> str:
    if not isinstance(option.default, Enum):
        return ""
    return " One of " + ", ".join(f"`{each.value}`" for each in type(option.default)) + "."


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")
