"""Reads a settings file, Kafka's server.properties, and refuses lines that cannot be settings.

`java.util.Properties` accepts any text as a properties file: `not a kafka dir` is a key `not`. So a wrong file would
start a node with all the defaults. Here a line has to look like a setting:

- its name has no characters that no setting's name has (quotes, brackets, control characters);
- if only blanks separate name and value, or there is no value, the name is a known one, or has a dot.

What is wrong is told by the number of its line and never quoted: the wrong file may be one with a password.

Kafka reads such files as ISO-8859-1. A file that is valid UTF-8 is read as UTF-8, so that non-ASCII characters need no
escapes.
"""

import re
from collections.abc import Container

from ottla.model.properties import PropertiesError, PropertyEntry, parse_entries

_NAME = re.compile(r"[\w.$%@/+~#*-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


def parse_settings(data: bytes, known: Container[str]) -> dict[str, str]:
    """Return the settings of the file; raise `PropertiesError`, with the line's number, if it is no settings file."""
    text = _decode(data)
    found = _CONTROL.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise PropertiesError(f"line {line} is no text: it holds the byte 0x{ord(found[0]):02x}")
    values = {}
    for entry in parse_entries(text):
        if not _is_setting(entry, known):
            why = (
                f"what stands before its {entry.separator!r} is no name" if entry.separator else "it is not NAME=VALUE"
            )
            raise PropertiesError(f"line {entry.line} is no setting: {why}")
        values[entry.name] = entry.value
    return values


def _is_setting(entry: PropertyEntry, known: Container[str]) -> bool:
    if entry.separator:
        return _NAME.fullmatch(entry.name) is not None
    return entry.name in known or ("." in entry.name and _NAME.fullmatch(entry.name) is not None)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")
