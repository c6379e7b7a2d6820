"""Control characters of records, names and messages, written as escapes, so that they cannot steer a terminal.

Rules:
- Only output on a terminal is changed; in pipes and files every byte stays as it is.
- Newline and tab stay as they are. Carriage return and escape are among those that are written as escapes: what
  follows them could overwrite other lines, or change the title or the settings of the terminal.
"""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """Write control characters as `\\x1b`."""
    return _STEERING.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def visible_json(text: str) -> str:
    """Write control characters as `\\u009b`, which JSON reads as the same character."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
