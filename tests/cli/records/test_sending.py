"""`ottla produce` that cannot send everything says what was sent, and where to go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from ottla.cli.records import sending
from ottla.cli.records.sending import send_all
from ottla.cli.records.text import Outgoing, from_json
from ottla.client.errors import DeliveryFailed
from ottla.client.producer.accumulator import RecordMetadata
from ottla.model.errors import ApiError, ErrorCode
from ottla.operations.errors import CommandError

Cli = Callable[..., Run]


class Fake:
    """Stands for a producer: records whose value is in `lost` are not acknowledged."""

    def __init__(self, *lost: bytes) -> None:
        self.lost = lost
        self.sent: list[bytes] = []

    def __call__(self, *_: object) -> Fake:
        return self

    async def __aenter__(self) -> Fake:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def flush(self) -> None:
        pass

    async def enqueue(self, topic: str, value: bytes, *_: Any, **__: Any) -> asyncio.Future[RecordMetadata]:
        future: asyncio.Future[RecordMetadata] = asyncio.Future()
        if value in self.lost:
            error = DeliveryFailed("given up")
            error.__cause__ = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
            future.set_exception(error)
        else:
            self.sent.append(value)
            future.set_result(RecordMetadata(topic, 0, len(self.sent), 0))
        return future


def send(fake: Fake, monkeypatch: pytest.MonkeyPatch, *lines: bytes) -> CommandError:
    monkeypatch.setattr("ottla.client.producer.producer.Producer", fake)

    async def numbered() -> AsyncIterator[tuple[int, bytes]]:
        for number, line in enumerate(lines, 1):
            yield number, line

    def parse(line: bytes) -> Outgoing:
        if line == b"bad":
            raise CommandError("no ':' in it")
        return Outgoing(None, line)

    nothing: Any = None
    with pytest.raises(CommandError) as raised:
        asyncio.run(send_all(nothing, nothing, "t", parse, numbered(), verbose=False))
    return raised.value


def test_a_bad_line_is_named_and_what_is_good_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake()
    error = send(fake, monkeypatch, b"a", b"b", b"bad", b"c")
    assert str(error) == "line 3: no ':' in it (2 records before it acknowledged, nothing sent from there on)"
    assert error.hint == "mend line 3 and go on from there"
    assert fake.sent == [b"a", b"b"]


def test_records_that_are_not_acknowledged_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    error = send(Fake(b"b", b"c", b"e"), monkeypatch, b"a", b"b", b"c", b"d", b"e", b"f")
    assert str(error) == "3 records (lines 2-3, 5) not acknowledged, 3 acknowledged: given up"
    assert error.hint is not None
    assert error.hint.startswith("the broker cannot write to its disk")
    assert error.hint.endswith("send lines 2-3, 5 again and what follows line 5")


def test_a_failure_before_a_bad_line_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    error = send(Fake(b"b"), monkeypatch, b"a", b"b", b"bad")
    assert str(error).startswith("1 record (line 2) not acknowledged, 1 acknowledged")


def test_the_first_failure_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_WAITING_MAX", 2)
    fake = Fake(b"b")
    error = send(fake, monkeypatch, b"a", b"b", b"c")
    assert fake.sent == [b"a"] and (error.hint or "").endswith("send line 2 again and what follows line 2")


def test_many_ranges_are_cut() -> None:
    assert sending._ranges([1, 3, 5, 7, 9, 11, 12]) == "1, 3, 5, 7, 9 and more up to 12"


def test_against_a_node(ottla: Cli, tmp_path: Path) -> None:
    ottla("topic", "create", "t")
    bad = ottla("produce", "t", "-K", ":", stdin="a:1\n\nb:2\nnope\nc:3\n", code=1)
    first, hint = bad.err.splitlines()
    assert first.startswith("error: line 4: no ':' between key and value") and "2 records before it" in first
    assert hint == "hint: mend line 4 and go on from there"
    assert ottla("consume", "t", "-F", "raw").out.splitlines() == ["1", "2"]
    ottla("topic", "alter", "t", "max.message.bytes=3000000")
    ottla("produce", "t", stdin="x" * 2_000_000 + "\n")
    large = ottla("produce", "t", stdin="y\n" + "x" * 4_000_000 + "\n", code=1).err
    assert "1 record (line 2) not acknowledged, 1 acknowledged: MESSAGE_TOO_LARGE" in large
    assert "hint: raise max.message.bytes of the topic" in large
    assert "no such file" in ottla("produce", "t", "-f", str(tmp_path / "nofile"), code=1).err.lower()


def test_fields_of_json() -> None:
    assert from_json(b'{"key": "k", "value": null}') == Outgoing(b"k", None)
    assert from_json(b'{"topic": "t", "offset": 7, "value": "v"}') == Outgoing(None, b"v")
    for line, problem in [
        (b'{"valeu": "x"}', "no field 'valeu'"),
        (b'{"key": "k"}', 'it has no value; "value": null'),
        (b'{"value": "a", "value_base64": "YQ=="}', "exclude each other"),
    ]:
        with pytest.raises(CommandError, match=problem):
            from_json(line)
