"""Schemas as texts: read from files, printed so that people can read them, and compared line by line."""

from __future__ import annotations

import difflib
import json
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from ottla.cli.terminal.stdin_text import read_stdin_text
from ottla.cli.terminal.visible import visible
from ottla.operations.errors import CommandError

_EXTENSIONS = {".avsc": "AVRO", ".avro": "AVRO", ".json": "JSON", ".jsonschema": "JSON", ".proto": "PROTOBUF"}
_LANGUAGES = {"AVRO": "json", "JSON": "json", "PROTOBUF": "protobuf"}
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class SchemaKind(StrEnum):
    """The types of schemas, for `--type`."""

    AVRO = "avro"
    JSON = "json"
    PROTOBUF = "protobuf"


def read_schema(file: str, kind: SchemaKind | None) -> tuple[str, str]:
    """(type, text) of a file, or of the standard input (`-`); the type follows from the extension."""
    if file == "-":
        return (kind or SchemaKind.AVRO).upper(), read_stdin_text("the schema")
    path = Path(file)
    found = kind.upper() if kind is not None else _EXTENSIONS.get(path.suffix.lower())
    if found is None:
        raise typer.BadParameter(f"{file}: say --type avro, json or protobuf", param_hint="FILE")
    try:
        return found, path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandError(f"{file} is not text in UTF-8") from None


def parse_references(texts: list[str]) -> list[dict[str, Any]]:
    """Parse `NAME=SUBJECT:VERSION`."""
    found = []
    for text in texts:
        name, equals, rest = text.partition("=")
        subject, colon, version = rest.rpartition(":")
        if not equals or not colon or not name or not version.isdecimal():
            raise typer.BadParameter(f"{text!r} is not NAME=SUBJECT:VERSION", param_hint="--ref")
        found.append({"name": name, "subject": subject, "version": int(version)})
    return found


def pretty(kind: str, text: str) -> str:
    """JSON with an indent; anything else as it is."""
    if _LANGUAGES.get(kind) == "json":
        try:
            return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except ValueError:
            return text
    return text.rstrip("\n")


def print_schema(kind: str, text: str) -> None:
    from ottla.cli.terminal.output import out

    console = out()
    if not console.is_terminal:
        print(pretty(kind, text))
        return
    from rich.syntax import Syntax

    console.print(Syntax(visible(pretty(kind, text)), _LANGUAGES.get(kind, "text"), background_color="default"))


def diff_lines(old: tuple[str, str, str], new: tuple[str, str, str]) -> list[str]:
    """A unified diff of two (name, type, text)."""
    before, after = pretty(old[1], old[2]).splitlines(), pretty(new[1], new[2]).splitlines()
    return list(difflib.unified_diff(before, after, old[0], new[0], lineterm="", n=3))


def print_diff(lines: list[str]) -> None:
    from rich.text import Text

    from ottla.cli.terminal.output import out

    console = out()
    for line in lines:
        style = "bold" if line.startswith(("+++", "---")) else _COLOURS.get(line[:1], "")
        console.print(Text(visible(line) if console.is_terminal else line, style=style))
