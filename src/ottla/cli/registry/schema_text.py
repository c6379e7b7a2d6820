"""Schemas as texts on a terminal: read from files, printed so that people can read them, with their differences."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from ottla.cli.terminal.stdin_text import read_stdin_text
from ottla.cli.terminal.visible import visible
from ottla.operations.errors import CommandError
from ottla.operations.schema_text import LANGUAGES, parse_reference, pretty

_EXTENSIONS = {".avsc": "AVRO", ".avro": "AVRO", ".json": "JSON", ".jsonschema": "JSON", ".proto": "PROTOBUF"}
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
    try:
        return [parse_reference(text)._asdict() for text in texts]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--ref") from None


def print_schema(kind: str, text: str) -> None:
    from ottla.cli.terminal.output import out

    console = out()
    if not console.is_terminal:
        print(pretty(kind, text))
        return
    from rich.syntax import Syntax

    console.print(Syntax(visible(pretty(kind, text)), LANGUAGES.get(kind, "text"), background_color="default"))


def print_diff(lines: list[str]) -> None:
    from rich.text import Text

    from ottla.cli.terminal.output import out

    console = out()
    for line in lines:
        style = "bold" if line.startswith(("+++", "---")) else _COLOURS.get(line[:1], "")
        console.print(Text(visible(line) if console.is_terminal else line, style=style))
