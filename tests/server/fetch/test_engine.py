"""The engine of fetches with a policy of the test: when an answer leaves, what it waits for, what is read again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from ottla.log.files.disk import Cold, StorageError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.fetch.engine import Fetch, FetchEngine, Reads
from ottla.server.loop.later import Later
from ottla.server.loop.waiters import Waiters

WAIT_MS = 1_000
MAX_BYTES = 100


class Clock:
    """A loop whose timers the test fires."""

    def __init__(self) -> None:
        self.timers: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def call_later(self, delay_s: float, callback: Callable[..., None], *args: Any) -> Any:
        self.timers.append((callback, args))
        return SimpleNamespace(cancel=lambda: None)

    def call_soon(self, callback: Callable[..., None], *args: Any) -> Any:
        return self.call_later(0, callback, *args)


class Read(NamedTuple):
    records: bytes
    error: ErrorCode | None = None


class Script(Reads[str, Read, "dict[str, Any]"]):
    """Reads what `contents` says; a partition's name stands for it and for the key of its changes."""

    def __init__(self, contents: dict[str, Any]) -> None:
        self.contents = contents
        self.urgent = False
        self.looks: list[str] = []
        self.given_back: list[bytes] = []

    def to_read(self, fetch: Any, changed: Hashable | None) -> Sequence[str]:
        self.urgent = False
        return tuple(self.contents) if changed is None else (str(changed),)

    def count(self) -> int:
        return len(self.contents)

    def find(self, asked: str) -> Any:
        if self.contents[asked] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return asked

    def read(self, fetch: Any, asked: str, partition: Any, left_bytes: int) -> Read:
        self.looks.append(asked)
        content = self.contents[asked]
        if isinstance(content, Exception) and not (isinstance(content, Cold) and fetch.patient):
            raise content
        return Read(content[:left_bytes] if isinstance(content, bytes) else b"slow")

    def nothing_yet(self, asked: str, partition: Any) -> Read:
        return Read(b"")

    def refuse(self, fetch: Any, asked: str, partition: Any, error: ApiError) -> Read | None:
        if partition is None:
            return None
        self.urgent = True
        return Read(b"", error.code)

    def wait_for(self, fetch: Any) -> Sequence[Hashable]:
        return tuple(fetch.found) if fetch.wait_ms > 0 else ()

    def respond(self, fetch: Any) -> dict[str, Any]:
        return {asked: read.error or read.records for asked, (_, read) in fetch.found.items()}

    def read_again(self, before: Read) -> None:
        self.given_back.append(before.records)


class ScriptForDisk(Script):
    waits_for_disk = True


class Stage:
    def __init__(self) -> None:
        self.clock = Clock()
        self.waiters = Waiters(self.clock)
        self.failed: list[Any] = []
        self.looked_up: list[Any] = []
        partitions: Any = SimpleNamespace(
            fetch_max_bytes=MAX_BYTES, storage_failed=lambda partition, error: self.failed.append(partition)
        )
        cold: Any = SimpleNamespace(look_up=lambda cold, partition: self.looked_up.append(partition) is None)
        self.engine = FetchEngine(partitions, self.waiters, cold)

    def fetch(self, reads: Script, *, min_bytes: int = 1, max_bytes: int = MAX_BYTES, wait_ms: int = WAIT_MS) -> Any:
        return Fetch(self.engine, reads, max_bytes, min_bytes, wait_ms).answer()

    def time_is_over(self) -> None:
        callback, args = self.clock.timers[0]
        callback(*args)


def cold() -> Any:
    file: Any = SimpleNamespace(path="cold")
    return Cold(file, 0, 1)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_enough_is_answered_at_once(stage: Stage) -> None:
    assert stage.fetch(Script({"a": b"xy", "b": b""})) == {"a": b"xy", "b": b""}
    assert stage.waiters.count == 0


def test_all_partitions_share_max_bytes(stage: Stage) -> None:
    assert stage.fetch(Script({"a": b"xyz", "b": b"xyz", "c": b"xyz"}), max_bytes=4) == {
        "a": b"xyz",
        "b": b"x",
        "c": b"",
    }
    everything = Script({"a": b"x" * 2 * MAX_BYTES})
    assert stage.fetch(everything, max_bytes=limits.INT32_MAX) == {"a": b"x" * MAX_BYTES}, "the node has a bound, too"


def test_without_time_the_answer_does_not_wait(stage: Stage) -> None:
    assert stage.fetch(Script({"a": b""}), wait_ms=0) == {"a": b""}


def test_errors_are_urgent(stage: Stage) -> None:
    broken = Script({"a": b"", "b": StorageError(5, "broken")})
    assert stage.fetch(broken) == {"a": b"", "b": ErrorCode.KAFKA_STORAGE_ERROR}
    assert stage.failed == ["b"]
    refused = Script({"a": b"", "b": ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)})
    assert stage.fetch(refused) == {"a": b"", "b": ErrorCode.OFFSET_OUT_OF_RANGE}


def test_what_the_policy_leaves_out_is_not_found(stage: Stage) -> None:
    reads = Script({"a": b"x", "b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    assert stage.fetch(reads) == {"a": b"x"}


def test_a_change_costs_one_look(stage: Stage) -> None:
    reads = Script({"a": b"", "b": b"", "c": b""})
    later = stage.fetch(reads, min_bytes=2)
    assert isinstance(later, Later)
    reads.looks.clear()
    reads.contents["b"] = b"x"
    stage.waiters.notify("b")
    assert not later.done and reads.looks == ["b"]
    reads.contents["b"] = b"xy"
    stage.waiters.notify("b")
    assert later.taken() == {"a": b"", "b": b"xy", "c": b""}
    assert reads.looks == ["b", "b"] and stage.waiters.count == 0


def test_what_was_found_before_is_read_again_before_it_is_answered(stage: Stage) -> None:
    reads = Script({"a": b"x", "b": b""})
    later = stage.fetch(reads, min_bytes=2)
    reads.looks.clear()
    reads.contents.update(a=b"y", b=b"z")
    stage.waiters.notify("b")
    assert later.taken() == {"a": b"y", "b": b"z"}
    assert reads.looks == ["b", "a", "b"]
    assert reads.given_back == [b"", b"x", b"z"], "nothing counts twice"


def test_what_is_gone_when_it_is_read_again_is_waited_for_again(stage: Stage) -> None:
    reads = Script({"a": b"x", "b": b""})
    later = stage.fetch(reads, min_bytes=2)
    reads.contents.update(a=b"", b=b"z")
    stage.waiters.notify("b")
    assert not later.done
    reads.contents["a"] = b"x"
    stage.waiters.notify("a")
    assert later.taken() == {"a": b"x", "b": b"z"}


def test_when_the_time_is_over_everything_is_read_again(stage: Stage) -> None:
    reads = Script({"a": b"x", "b": b""})
    later = stage.fetch(reads, min_bytes=50)
    reads.looks.clear()
    stage.time_is_over()
    assert later.taken() == {"a": b"x", "b": b""} and reads.looks == ["a", "b"]


def test_a_connection_that_is_gone_ends_the_wait(stage: Stage) -> None:
    reads = Script({"a": b""})
    stage.fetch(reads).abandon()
    reads.looks.clear()
    stage.waiters.notify("a")
    assert stage.waiters.count == 0 and not reads.looks


def test_what_is_cold_is_looked_up_and_the_rest_answered(stage: Stage) -> None:
    assert stage.fetch(ScriptForDisk({"a": cold(), "b": b"x"})) == {"a": b"", "b": b"x"}
    assert stage.looked_up == ["a"]


def test_an_answer_without_anything_waits_for_the_disk_even_without_time(stage: Stage) -> None:
    reads = ScriptForDisk({"a": cold(), "b": cold()})
    later = stage.fetch(reads, wait_ms=0)
    assert isinstance(later, Later)
    reads.contents["a"] = b""
    stage.waiters.notify("a")
    assert not later.done, "the other may have something"
    reads.contents["b"] = b"x"
    stage.waiters.notify("b")
    assert later.taken() == {"a": b"", "b": b"x"}


def test_not_all_readers_wait_for_the_disk(stage: Stage) -> None:
    assert stage.fetch(Script({"a": cold()}), wait_ms=0) == {"a": b""}


def test_a_reader_that_finds_the_disk_cold_too_often_becomes_patient(stage: Stage) -> None:
    reads = ScriptForDisk({"a": cold()})
    later = stage.fetch(reads, wait_ms=0)
    for _ in range(limits.COLD_TRIES_MAX):
        assert not later.done
        stage.waiters.notify("a")
    stage.waiters.notify("a")
    assert later.taken() == {"a": b"slow"}
