"""What the bytes of a key, value or header say: read by the registry's schemas, as JSON, MessagePack, text, hex.

Rules:
- `auto` guesses: a registered schema first, then JSON, then text, then MessagePack (maps and lists only), then hex.
- A format that does not fit is no failure: the bytes are shown as text or hex, and `note` says why.
- Only so many bytes are decoded; of larger contents the beginning is shown.
- A registry that does not answer, or does not know the schemas, is asked no more for the rest of a page.

Reading may take time and asks the registry over the network: callers do it in a worker thread.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from ottla.client.consumer.ranges import ConsumedRecord
from ottla.client.registry import RegistryError, SchemaRegistry
from ottla.model import limits
from ottla.operations.errors import CommandError
from ottla.operations.payloads import PayloadDecoder, PayloadType
from ottla.operations.records.msgpack import NotMsgpack, decode
from ottla.schemas.framing import GUID_PREFIX_BYTES, ID_PREFIX_BYTES, MAGIC_GUID, MAGIC_ID, find_mark

_TRIES_MAX = 3  # schemas that the registry does not know, before it is asked no more
_NUMBER_BYTES = (4, 8)
_HEX_WIDTH = 16
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class ContentFormat(StrEnum):
    """The formats that keys and values can be read as."""

    auto = "auto"
    registry = "registry"
    json = "json"
    msgpack = "msgpack"
    text = "text"
    number = "number"
    hex = "hex"


@dataclass(frozen=True, slots=True)
class ReadContent:
    """How contents were read, as one line of text; `value` is the JSON value, if there is one. `note` says which schema
    it was, or why the contents could not be read as was wanted.
    """

    format: str
    text: str
    value: object = None
    note: str = ""

    @property
    def is_structured(self) -> bool:
        """Whether it is a JSON value."""
        return self.format in _STRUCTURED


NULL = ReadContent("null", "null")
_PLAIN = frozenset({ContentFormat.auto, ContentFormat.text})
_STRUCTURED = frozenset({ContentFormat.registry, ContentFormat.json, ContentFormat.msgpack})


class RecordReader:
    """Reads keys and values of records, each in its format. Not for use by several threads at once."""

    def __init__(
        self,
        registry: SchemaRegistry | None,
        key: ContentFormat = ContentFormat.auto,
        value: ContentFormat = ContentFormat.auto,
    ) -> None:
        self._formats = {True: key, False: value}
        self._failed = 0
        self._unknown: set[bytes] = set()  # the beginnings of values whose schemas the registry does not know
        self._decoders: dict[bool, PayloadDecoder] = {}
        if registry is not None:
            for of_key in (True, False):
                self._decoders[of_key] = PayloadDecoder(registry, PayloadType.auto, of_key=of_key)

    @property
    def is_plain(self) -> bool:
        """Whether plain text would be read as what it is."""
        return _PLAIN.issuperset(self._formats.values())

    def key(self, record: ConsumedRecord) -> ReadContent:
        return self._read(record, record.key, of_key=True)

    def value(self, record: ConsumedRecord) -> ReadContent:
        return self._read(record, record.value, of_key=False)

    def _read(self, record: ConsumedRecord, data: bytes | None, *, of_key: bool) -> ReadContent:
        if data is None:
            return NULL
        wanted = self._formats[of_key]
        if wanted not in (ContentFormat.auto, ContentFormat.registry):
            return read_content(data, wanted)
        mark = find_mark(record.headers, of_key=of_key)
        is_framed = mark is not None or _is_framed(data)
        if len(data) > limits.CONSOLE_DECODED_BYTES_MAX or not (is_framed or wanted is ContentFormat.registry):
            return read_content(data, ContentFormat.auto)
        beginning = (data if mark is None else mark)[:GUID_PREFIX_BYTES]
        found = self._decoded(record, beginning, of_key=of_key)
        if isinstance(found, ReadContent):
            return found
        plain = read_content(data, ContentFormat.auto)
        return ReadContent(plain.format, plain.text, plain.value, found)

    def _decoded(self, record: ConsumedRecord, beginning: bytes, *, of_key: bool) -> ReadContent | str:
        """The contents by their schema, or why they cannot be read by it."""
        decoder = self._decoders.get(of_key)
        if decoder is None:
            return "no schema registry is known"
        schema = beginning[: ID_PREFIX_BYTES if beginning[:1] == bytes((MAGIC_ID,)) else None]
        if schema in self._unknown or self._failed >= _TRIES_MAX:
            return "the registry was not asked for this schema"
        try:
            text = decoder.decoded(record)
            assert text is not None, "only contents that are there are read"
            return ReadContent(
                ContentFormat.registry, text.decode("utf-8", "replace"), json.loads(text), _named(schema)
            )
        except CommandError as error:  # the registry does not answer
            self._failed = _TRIES_MAX
            return str(error)
        except RegistryError as error:
            self._unknown.add(schema)
            self._failed += 1
            return str(error)
        except ValueError as error:
            return str(error)
        except RecursionError:
            return "it is nested too deeply"


def read_content(data: bytes | None, wanted: ContentFormat) -> ReadContent:
    """Read bytes without a registry."""
    if data is None:
        return NULL
    if len(data) > limits.CONSOLE_DECODED_BYTES_MAX:
        begin = data[: limits.CONSOLE_VALUE_BYTES_MAX]
        text = _text(begin)
        note = f"only the first {len(begin):,} of {len(data):,} bytes are shown"
        is_text = text is not None and wanted is not ContentFormat.hex
        return ReadContent("text" if is_text else "hex", text if is_text and text else begin.hex(), note=note)
    match wanted:
        case ContentFormat.json:
            return _as_json(data) or _plain(data, "it is not JSON")
        case ContentFormat.msgpack:
            return _as_msgpack(data)
        case ContentFormat.text:
            return ReadContent(ContentFormat.text, data.decode("utf-8", "backslashreplace"))
        case ContentFormat.number:
            if len(data) in _NUMBER_BYTES:
                return ReadContent(ContentFormat.number, str(int.from_bytes(data, "big", signed=True)))
            return _plain(data, f"a number has 4 or 8 bytes, not {len(data)}")
        case ContentFormat.hex:
            return ReadContent(ContentFormat.hex, data.hex())
        case _:
            return _guessed(data)


def hex_dump(data: bytes) -> str:
    """Bytes in lines of sixteen, with their offsets and letters."""
    lines = []
    for at in range(0, len(data), _HEX_WIDTH):
        row = data[at : at + _HEX_WIDTH]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}  {row.hex(' '):<{_HEX_WIDTH * 3}} {letters}")
    return "\n".join(lines)


def json_line(value: object) -> str:
    """A JSON value on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _guessed(data: bytes) -> ReadContent:
    if data[:1] in (b"{", b"[", b'"') and (found := _as_json(data)) is not None:
        return found
    text = _text(data)
    if text is not None:
        return ReadContent(ContentFormat.text, text)
    if data[0] >= 0x80:
        read = _as_msgpack(data)
        if isinstance(read.value, dict | list):
            return read
    return ReadContent(ContentFormat.hex, data.hex())


def _as_json(data: bytes) -> ReadContent | None:
    try:
        value = json.loads(data)
        return ReadContent(ContentFormat.json, json_line(value), value)
    except (ValueError, RecursionError):
        return None


def _as_msgpack(data: bytes) -> ReadContent:
    try:
        value = decode(data)
    except NotMsgpack as error:
        return _plain(data, f"it is not MessagePack: {error}")
    return ReadContent(ContentFormat.msgpack, json_line(value), value)


def _plain(data: bytes, note: str) -> ReadContent:
    text = _text(data)
    if text is None:
        return ReadContent(ContentFormat.hex, data.hex(), note=note)
    return ReadContent(ContentFormat.text, text, note=note)


def _text(data: bytes) -> str | None:
    """The bytes as text, unless they are none: not UTF-8, or with control characters."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if error.start < len(data) - 3 or len(data) < limits.CONSOLE_VALUE_BYTES_MAX:
            return None
        text = data[: error.start].decode()  # it was cut within a character
    return None if _CONTROLS.search(text) else text


def _is_framed(data: bytes) -> bool:
    is_id = data[:1] == bytes((MAGIC_ID,)) and len(data) >= ID_PREFIX_BYTES
    return is_id or (data[:1] == bytes((MAGIC_GUID,)) and len(data) >= GUID_PREFIX_BYTES)


def _named(schema: bytes) -> str:
    if schema[:1] == bytes((MAGIC_ID,)):
        return f"schema {int.from_bytes(schema[1:], 'big')}"
    return f"schema {schema[1:].hex()}"
