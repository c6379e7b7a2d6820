"""Records as a file: CSV or JSON, in parts of one record each, which are read while the file is sent.

Until a record is sent only its bytes are held, and not what they say, which may be many times as much.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncGenerator, Callable, Sequence

from ottla.client.consumer.ranges import ConsumedRecord
from ottla.operations.records.contents import ReadContent, RecordReader
from ottla.operations.threads import BlockingWork, in_thread

_COLUMNS = ["partition", "offset", "timestamp", "key", "value", "headers"]
# What a spreadsheet would take for a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_RECORD_BYTES = 200  # that a record takes beside its contents, about


def held_bytes(record: ConsumedRecord) -> int:
    """The bytes that a record takes until it is sent, about."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + _RECORD_BYTES


async def json_file(records: Sequence[ConsumedRecord], reader: RecordReader) -> AsyncGenerator[bytes, None]:
    """The records as one JSON list."""
    before = b"[\n "
    for record in records:
        yield before + await _read(_json_record, record, reader)
        before = b",\n "
    yield b"\n]" if records else b"[]"


async def csv_file(records: Sequence[ConsumedRecord], reader: RecordReader) -> AsyncGenerator[bytes, None]:
    """The records as lines, below one with the names of the columns."""
    yield _line(_COLUMNS)
    for record in records:
        yield await _read(_csv_record, record, reader)


async def _read(
    write: Callable[[ConsumedRecord, RecordReader], bytes], record: ConsumedRecord, reader: RecordReader
) -> bytes:
    return await in_thread(BlockingWork.decoding, write, record, reader)


def _json_record(record: ConsumedRecord, reader: RecordReader) -> bytes:
    shown = {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _json_value(reader.key(record)),
        "value": _json_value(reader.value(record)),
        "headers": [[name, _header(value)] for name, value in record.headers],
    }
    text = json.dumps(shown, ensure_ascii=False, indent=1)
    return text.replace("\n", "\n ").encode("utf-8", "replace")


def _json_value(content: ReadContent) -> object:
    if content.format == "null":
        return None
    return content.value if content.is_structured else content.text


def _csv_record(record: ConsumedRecord, reader: RecordReader) -> bytes:
    headers = json.dumps([[name, _header(value)] for name, value in record.headers], ensure_ascii=False)
    texts = [_cell(_text(reader.key(record))), _cell(_text(reader.value(record))), _cell(headers)]
    return _line([record.partition, record.offset, record.timestamp, *texts])


def _line(cells: Sequence[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode("utf-8", "replace")


def _text(content: ReadContent) -> str:
    return "" if content.format == "null" else content.text


def _header(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULAS) else text
