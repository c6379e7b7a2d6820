"""`ottla dlq` against a broker whose share groups have given records up."""

from collections.abc import Callable, Iterator

import pytest
from tests.cli.conftest import Run
from tests.server.share_talk import REJECT, RELEASE, Queue
from tests.support.requests.raw import RawConnection

from ottla.records.record import NO_OFFSET, Record
from ottla.testing.broker import EmbeddedBroker

Ottla = Callable[..., Run]


@pytest.fixture
def queue(ottla_broker: EmbeddedBroker) -> Iterator[Queue]:
    """Three letters: two rejected records, and one that was delivered too often."""
    settings = {"ottla_share_dlq_topic": "graves", "share_delivery_count_limit": 2}
    with RawConnection(ottla_broker.bootstrap) as connection, Queue(ottla_broker, connection, **settings) as queue:
        queue.put(
            Record(NO_OFFSET, 1_000, b"k", b"bad", (("trace", b"7"),)),
            Record(NO_OFFSET, 2_000, None, b"worse"),
            Record(NO_OFFSET, 3_000, b"k", b"tiresome"),
        )
        member = queue.join()
        assert member.poll() == [(0, 2, 1)]
        assert member.poll([(0, 2, [REJECT, REJECT, RELEASE])], max_wait_ms=60_000) == [(2, 2, 2)]
        assert member.poll([(2, 2, [RELEASE])]) == []
        yield queue


def test_list(ottla: Ottla, queue: Queue) -> None:
    first, _, third = ottla("dlq", "list", "graves", "--json").json
    assert first.pop("time") > 1_000
    assert first == {
        "letter": "0:0",
        "topic": queue.topic,
        "partition": 0,
        "offset": 0,
        "group": queue.group,
        "deliveries": 1,
        "reason": "rejected",
        "key": "k",
        "value": "bad",
        "error": None,
        "original_timestamp": 1_000,
        "headers": [["trace", "7"]],
    }
    assert (third["reason"], third["deliveries"], third["offset"]) == ("delivery-limit", 2, 2)
    lines = ottla("dlq", "list", "graves", "--reason", "rejected", "--max", "1").lines
    assert lines[1].split("\t")[:4] == ["0:0", queue.topic, "0", "0"] and len(lines) == 2
    assert ottla("dlq", "list", "graves", "--group", "another", "--json").json == []


def test_letters_of_contracts_and_of_typed_columns(ottla: Ottla) -> None:
    ottla("topic", "create", "graves")
    ottla("topic", "create", "orders")
    said = {"topic": "orders", "partition": "0", "offset": "7", "timestamp": "1000"}
    contract = [f"-Hottla.dlq.{name}={value}" for name, value in {**said, "reason": "schema", "error": "no id"}.items()]
    typed = [f"-Hottla.dlq.{name}={value}" for name, value in {**said, "reason": "it ends too early"}.items()]
    for headers in (contract, typed, []):
        ottla("produce", "graves", "value", *headers)
    run = ottla("dlq", "list", "graves", "--json")
    assert [(row["reason"], row["error"], row["group"], row["deliveries"]) for row in run.json] == [
        ("schema", "no id", None, None),
        ("decoding", "it ends too early", None, None),
    ]
    assert "1 of the records of graves are not dead letters" in run.err
    assert "schema: no id" in ottla("dlq", "list", "graves", "--reason", "schema").out
    assert "1 letter sent" in ottla("dlq", "redrive", "graves", "--reason", "decoding").err
    (sent,) = ottla("consume", "orders", "-F", "json").lines
    assert '"ottla.dlq.redriven-from", "graves-0@1"' in sent and "ottla.dlq.reason" not in sent


def test_redrive_sends_exactly_what_was_selected(ottla: Ottla, queue: Queue) -> None:
    ottla("dlq", "redrive", "graves", "--letter", "0:0", "--letter", "0:2", "--dry-run")
    assert queue.join("nobody").poll() == [], "a dry run sends nothing"
    ottla("dlq", "redrive", "graves", "--letter", "0:0", "--letter", "0:2")
    found = queue.join("again").records()
    assert [(record.offset, record.key, record.value, record.headers) for record, _ in found] == [
        (3, b"k", b"bad", (("trace", b"7"), ("ottla.dlq.redriven-from", b"graves-0@0"))),
        (4, b"k", b"tiresome", (("ottla.dlq.redriven-from", b"graves-0@2"),)),
    ]
    assert [count for _, count in found] == [1, 1], "they begin anew"


def test_redrive_is_bounded_and_says_so(ottla: Ottla, queue: Queue) -> None:
    run = ottla("dlq", "redrive", "graves", "--all", "--max", "2", "--to", "elsewhere", code=1)
    assert "elsewhere" in run.err, "there is no such topic, so nothing is sent"
    ottla("topic", "create", "elsewhere", "--partitions", "3")
    run = ottla("dlq", "redrive", "graves", "--from", queue.topic, "--max", "2", "--to", "elsewhere")
    assert "2 letters sent" in run.err and "more than 2" in run.err
    assert len(ottla("consume", "elsewhere", "--from-beginning").lines) == 2


@pytest.mark.parametrize(
    ("arguments", "told", "code"),
    [
        ((), "say which letters", 2),
        (("--letter", "five"), "PARTITION:OFFSET", 2),
        (("--letter", "0:0", "--letter", "0:99"), "there is no letter 0:99", 1),
    ],
)
def test_redrive_refuses_what_it_cannot_do(
    ottla: Ottla, queue: Queue, arguments: tuple[str, ...], told: str, code: int
) -> None:
    run = ottla("dlq", "redrive", "graves", *arguments, code=code)
    assert told in " ".join(run.err.replace("│", " ").split())
    assert queue.join("nobody").poll() == []
