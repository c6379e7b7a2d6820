"""Schemas as texts: laid out so that people can read them, and compared line by line."""

from __future__ import annotations

import difflib
import json

from ottla.schemas.schema import Reference

LANGUAGES = {"AVRO": "json", "JSON": "json", "PROTOBUF": "protobuf"}


def pretty(kind: str, text: str) -> str:
    """JSON with an indent; anything else as it is."""
    if LANGUAGES.get(kind) == "json":
        try:
            return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except ValueError:
            return text
    return text.rstrip("\n")


def diff_lines(old: tuple[str, str, str], new: tuple[str, str, str]) -> list[str]:
    """A unified diff of two (name, type, text)."""
    before, after = pretty(old[1], old[2]).splitlines(), pretty(new[1], new[2]).splitlines()
    return list(difflib.unified_diff(before, after, old[0], new[0], lineterm="", n=3))


def parse_reference(text: str) -> Reference:
    """Parse `NAME=SUBJECT:VERSION`. Raises ValueError."""
    name, equals, rest = text.partition("=")
    subject, colon, version = rest.rpartition(":")
    if not equals or not colon or not name or not version.isdecimal():
        raise ValueError(f"{text!r} is not NAME=SUBJECT:VERSION")
    return Reference(name, subject, int(version))
