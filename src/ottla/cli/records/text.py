"""Records as text: how `produce` reads them and how `consume` shows them.

Rules:
- `produce --format json` reads the JSON that `consume --format json` prints. Bytes that are not UTF-8 are written as
  base64 under `key_base64` and `value_base64`, in a header as `{"base64": ...}`.
- Invalid UTF-8 is shown with replacement characters and never refused, so that every record can be shown.
"""

from __future__ import annotations

import base64
import json
import re
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.cli.terminal.visible import visible, visible_json
from ottla.model import limits
from ottla.model.limits import INT32_MAX, INT64_MAX
from ottla.operations.errors import CommandError, WrongUsage
from ottla.operations.payloads import JsonText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.client.consumer.ranges import ConsumedRecord

Headers = tuple[tuple[str, bytes | None], ...]

_HEX_WIDTH = 16
_NUMBERS = re.compile(r"\d+")  # the width and the precision of a format specification
_TEMPLATE_HINT = "fields are {topic} {partition} {offset} {timestamp} {time} {key} {value} {headers}; {{ is a brace"
_FIELDS = ("key", "key_base64", "value", "value_base64", "headers", "partition", "timestamp", "topic", "offset")


class RecordTextEncoder(Protocol):
    """Encodes keys, or values, from JSON values and from text; None stays None."""

    def encode(self, value: Any) -> bytes | None: ...

    def encode_text(self, text: bytes | None) -> bytes | None: ...


class PlainEncoder:
    """Writes text unchanged, and any other JSON value as compact JSON."""

    def encode(self, value: Any) -> bytes | None:
        return _bytes(value)

    def encode_text(self, text: bytes | None) -> bytes | None:
        return text


_PLAIN = PlainEncoder()


class Outgoing(NamedTuple):
    """A record that `produce` read; if partition or timestamp is None, the producer chooses it."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None


# --- reading ----------------------------------------------------------------------------------------------------------


class Added(NamedTuple):
    """Parts that the command line adds to every record: a key instead of the record's own, headers, a partition."""

    key: str | None
    headers: Headers
    partition: int | None


def line_parser(
    is_json: bool,
    separator: bytes | None,
    null: str | None,
    keys: RecordTextEncoder,
    contents: RecordTextEncoder,
    added: Added,
) -> Callable[[bytes], Outgoing]:
    """A parser of lines to records."""
    marker = None if null is None else null.encode()
    fixed_key = None if added.key is None else keys.encode_text(added.key.encode())

    def read(line: bytes) -> Outgoing:
        if is_json:
            return from_json(line, keys, contents)
        found = from_line(line, separator, marker)
        return found._replace(key=keys.encode_text(found.key), value=contents.encode_text(found.value))

    def parse(line: bytes) -> Outgoing:
        found = read(line)
        return found._replace(
            key=found.key if fixed_key is None else fixed_key,
            headers=(*found.headers, *added.headers),
            partition=found.partition if added.partition is None else added.partition,
        )

    return parse


def from_line(line: bytes, key_separator: bytes | None, null_marker: bytes | None) -> Outgoing:
    """A line is a value, or `key<separator>value`; the null marker stands for a null key or value."""
    key: bytes | None = None
    value: bytes | None = line
    if key_separator is not None:
        key, found, value = line.partition(key_separator)
        if not found:
            raise CommandError(f"no {key_separator.decode(errors='replace')!r} between key and value in {line[:80]!r}")
    if null_marker is not None:
        key = None if key == null_marker else key
        value = None if value == null_marker else value
    return Outgoing(key, value)


def from_json(line: bytes, key: RecordTextEncoder = _PLAIN, value: RecordTextEncoder = _PLAIN) -> Outgoing:
    """Parse one JSON object: key, value, headers, partition, timestamp; all but the value may be left out. Topic and
    offset, which `consume` prints, are ignored. The arguments `key` and `value` encode them.
    """
    try:
        found = json.loads(line)
    except ValueError as error:
        raise CommandError(f"not JSON: {error}: {line[:80]!r}") from None
    try:
        return _outgoing(found, key, value)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise CommandError(f"not a record ({error}): {line[:80]!r}") from None


def _outgoing(found: Any, key: RecordTextEncoder, value: RecordTextEncoder) -> Outgoing:
    if not isinstance(found, dict):
        raise TypeError("a record is a JSON object")
    unknown = [name for name in found if name not in _FIELDS]
    if unknown:
        raise ValueError(f"there is no field {unknown[0]!r}, only {', '.join(_FIELDS)}")
    if "value" not in found and "value_base64" not in found:
        raise ValueError('it has no value; "value": null deletes what the key had')
    for name in ("key", "value"):
        if name in found and f"{name}_base64" in found:
            raise ValueError(f"{name} and {name}_base64 exclude each other")
    return Outgoing(
        key=_field(found, "key", key),
        value=_field(found, "value", value),
        headers=tuple((name, _bytes(value)) for name, value in _headers(found.get("headers") or [])),
        partition=_number(found, "partition", 0, INT32_MAX),
        timestamp=_number(found, "timestamp", -1, INT64_MAX),
    )


def _number(found: dict[str, Any], name: str, lowest: int, highest: int) -> int | None:
    number = found.get(name)
    if number is None:
        return None
    if type(number) is not int:
        raise TypeError(f"{name} is not a whole number")
    if not lowest <= number <= highest:
        raise ValueError(f"{name} is not between {lowest} and {highest}")
    return number


def _headers(found: Any) -> Iterable[tuple[str, Any]]:
    """The headers in `{name: value}` or `[[name, value], ...]`."""
    if isinstance(found, dict):
        return found.items()
    if not isinstance(found, list):
        raise TypeError("headers are neither an object nor a list")
    for each in found:
        if not (isinstance(each, list) and len(each) == 2 and isinstance(each[0], str)):
            raise TypeError("a header is not [name, value]")
    return [(name, value) for name, value in found]


def _field(found: dict[str, Any], name: str, encoder: RecordTextEncoder) -> bytes | None:
    if f"{name}_base64" in found:
        return base64.b64decode(found[f"{name}_base64"], validate=True)
    return encoder.encode(found.get(name))


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and list(value) == ["base64"]:
        return base64.b64decode(value["base64"], validate=True)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# --- showing ----------------------------------------------------------------------------------------------------------


def text(data: bytes | None) -> str:
    """Bytes as readable text."""
    return "null" if data is None else data.decode("utf-8", errors="replace")


def as_pretty(record: ConsumedRecord) -> bytes:
    """JSON over several lines, for people."""
    return as_json(record, indent=2)


def as_json(record: ConsumedRecord, indent: int | None = None) -> bytes:
    """JSON in one line, or indented."""
    shown: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_json_field("key", record.key),
        **_json_field("value", record.value),
    }
    if record.headers:
        shown["headers"] = [[name, _json_bytes(value)] for name, value in record.headers]
    return json.dumps(shown, ensure_ascii=False, indent=indent).encode() + b"\n"


def _json_field(name: str, data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {name: None}
    if isinstance(data, JsonText):
        return {name: json.loads(data)}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _json_bytes(data: bytes | None) -> str | dict[str, str] | None:
    """The value of a header, whose base64 cannot be under another name."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data or b"").decode()}


def as_raw(record: ConsumedRecord) -> bytes:
    """The value as it is, and a newline."""
    return (record.value or b"") + b"\n"


def as_hex(record: ConsumedRecord) -> bytes:
    """Key and value as a hex dump."""
    lines = [f"{record.topic}-{record.partition}@{record.offset}  {record.timestamp}"]
    for name, data in [("key", record.key), ("value", record.value), *record.headers]:
        lines.append(f"  {name}: {'null' if data is None else f'{len(data)} bytes'}")
        lines.extend(_hex_lines(data or b""))
    return "\n".join(lines).encode() + b"\n"


def _hex_lines(data: bytes) -> list[str]:
    lines = []
    for position in range(0, len(data), _HEX_WIDTH):
        row = data[position : position + _HEX_WIDTH]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"    {position:08x}  {row.hex(' '):<{_HEX_WIDTH * 3}} {letters}")
    return lines


def as_text(record: ConsumedRecord, *, colour: bool) -> bytes:
    """One line for a person: place, time, key, value, headers."""
    from ottla.operations.formats import time_text

    def paint(code: str, words: str) -> str:
        return f"\x1b[{code}m{words}\x1b[0m" if colour else words

    parts = [
        paint("36", f"{record.topic}-{record.partition}@{record.offset}"),
        paint("2", time_text(record.timestamp)),
    ]
    if record.key is not None:
        parts.append(paint("33", text(record.key)))
    parts.append(text(record.value) if record.value is not None else paint("2;3", "null"))
    if record.headers:
        parts.append(paint("2", "{" + ", ".join(f"{name}: {text(value)}" for name, value in record.headers) + "}"))
    return "  ".join(parts).encode() + b"\n"


def visible_record(record: ConsumedRecord) -> ConsumedRecord:
    """The record with its control characters as escapes; invalid UTF-8 becomes replacement characters."""

    def shown(data: bytes | None) -> bytes | None:
        return None if data is None else visible(text(data)).encode()

    headers = tuple((visible(name), shown(value)) for name, value in record.headers)
    return record._replace(key=shown(record.key), value=shown(record.value), headers=headers)


def visible_output(output: bytes, *, in_json: bool = False) -> bytes:
    """A shown record with its control characters as escapes."""
    return (visible_json if in_json else visible)(output.decode()).encode()


def template(pattern: str) -> Callable[[ConsumedRecord], bytes]:
    """A formatter for `{topic} {partition} {offset} {timestamp} {time} {key} {value} {headers}`; \\n and \\t work."""
    from ottla.client.consumer.ranges import ConsumedRecord
    from ottla.operations.formats import time_text

    pattern = pattern.replace("\\n", "\n").replace("\\t", "\t")

    def fields(record: ConsumedRecord) -> dict[str, str | int]:
        return {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "time": time_text(record.timestamp),
            "key": text(record.key),
            "value": text(record.value),
            "headers": ",".join(f"{name}={text(value)}" for name, value in record.headers),
        }

    nothing, largest = (fields(ConsumedRecord("", 0, each, each, None, None, (), 0)) for each in (0, INT64_MAX))
    try:
        for _, name, width, _ in Formatter().parse(pattern):
            if name is not None and (name not in nothing or "{" in (width or "")):
                raise ValueError(f"there is no field {(width if name in nothing else name)!r}")
            if any(int(number) > limits.TEMPLATE_WIDTH_MAX for number in _NUMBERS.findall(width or "")):
                raise ValueError(f"a field has at most {limits.TEMPLATE_WIDTH_MAX} columns, not {width!r}")
        pattern.format_map(nothing)
        pattern.format_map(largest)  # no character (`c`) has the number of every offset
    except (ValueError, OverflowError) as error:
        raise WrongUsage(f"the template cannot be used: {error}", _TEMPLATE_HINT) from None
    return lambda record: pattern.format_map(fields(record)).encode()
