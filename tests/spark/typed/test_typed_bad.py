"""Records that do not decode, in every mode of `on.bad`, every format, framed and plain: one verdict per row.

The registry is a double that answers as one does over HTTP, so that what it says when it is not well is tried, too.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.avro.cases import encoded
from tests.spark.raw_rows import rows

from ottla.client.registry import RegistryError, RegistryOptions, RegistryUnreachable, SchemaRegistry
from ottla.columns.codec import DecodedColumns
from ottla.log.config import ContractTerms
from ottla.records.record import Record
from ottla.schemas.framing import schema_mark
from ottla.schemas.readable import reader_of
from ottla.schemas.schema import SchemaSource, SchemaType
from ottla.server.schemas.record_check import RecordCheck
from ottla.spark.read.rows import TYPES
from ottla.spark.typed.dead_letters import PREFIX, letters
from ottla.spark.typed.key_or_value import Side
from ottla.spark.typed.reading import BadRecord, TypedColumns

MODES = ("fail", "null", "corrupt", "dlq")
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": ["null", "string"], "default": None}],
}
JSON = {"type": "object", "properties": {"id": {"type": "integer"}, "who": {"type": "string"}}}
PROTO = 'syntax = "proto3"; package p; message Order { int64 id = 1; optional string who = 2; }'
SOURCES = {
    "avro": SchemaSource(json.dumps(AVRO)),
    "json": SchemaSource(json.dumps(JSON), SchemaType.JSON),
    "protobuf": SchemaSource(PROTO, SchemaType.PROTOBUF),
}
PAYLOADS = {
    "avro": encoded(AVRO, {"id": 7, "who": "ada"}),
    "json": b'{"id": 7, "who": "ada"}',
    "protobuf": b"\x08\x07\x12\x03ada",
}
GUID = UUID(int=5)
ROW = {"id": 7, "who": "ada"}

# Ids: 1 to 3 are the formats' own; what others are, ANSWERS says.
IDS = {"avro": 1, "json": 2, "protobuf": 3}
BROKEN, REFERRING, FOREIGN, RECURSIVE = 10, 11, 12, 13
RECURSIVES = {
    "avro": '{"type":"record","name":"Order","fields":[{"name":"next","type":["null","Order"]}]}',
    "json": '{"properties":{"next":{"$ref":"#"}}}',
    "protobuf": 'syntax = "proto3"; package p; message Order { Order next = 1; }',
}


class Desk(SchemaRegistry):
    """Answers from a table; `status` and `body` stand for whatever else may answer there."""

    def __init__(self, kind: str, status: int = 0, body: bytes = b"", away: bool = False) -> None:
        super().__init__(RegistryOptions.of("http://desk:1", attempts=2, backoff_s=0, behind_s=0))
        self._kind, self._status, self._body, self._away = kind, status, body, away

    def _exchange(self, url: str, method: str, path: str, body: bytes | None) -> tuple[int, str, bytes]:
        if self._away:
            raise ConnectionRefusedError("nobody is there")
        if self._status:
            return self._status, "", self._body
        found = self._answers().get(path)
        if found is None:
            return 404, "", b'{"error_code":40403,"message":"Schema not found"}'
        return 200, "", json.dumps(found).encode()

    def _answers(self) -> dict[str, Any]:
        own = SOURCES[self._kind]
        kind = own.type.value
        broken = {"avro": '{"type":"nothing"}', "json": '{"properties": [1]}', "protobuf": "message {"}[self._kind]
        missing = {"name": "other", "subject": "other", "version": 1}
        return {
            **{f"/schemas/ids/{IDS[name]}": _answer(each) for name, each in SOURCES.items()},
            f"/schemas/guids/{GUID}": _answer(own),
            f"/schemas/ids/{BROKEN}": {"schema": broken, "schemaType": kind},
            f"/schemas/ids/{REFERRING}": {"schema": own.text, "schemaType": kind, "references": [missing]},
            f"/schemas/ids/{FOREIGN}": {"schema": "<xml/>", "schemaType": "XML"},
            f"/schemas/ids/{RECURSIVE}": {"schema": RECURSIVES[self._kind], "schemaType": kind},
        }


def _answer(source: SchemaSource) -> dict[str, str]:
    return {"schema": source.text, "schemaType": source.type.value}


def mark(kind: str, schema: int | UUID) -> bytes:
    return schema_mark(schema, (0,) if kind == "protobuf" else None)


def side(kind: str, registry: SchemaRegistry | None, name: str = "value") -> Side:
    return Side(name, SOURCES[kind], registry, "p.Order" if kind == "protobuf" else "")


def verdicts(sides: dict[str, Side], batch: pa.RecordBatch) -> dict[int, str]:
    """Which rows are bad, and why: the same in every mode, and what each mode makes of them is as it should be."""
    made = {mode: TypedColumns(sides, mode, False, "dead") for mode in MODES}
    columns = {mode: each.apply(batch) for mode, each in made.items() if mode != "fail"}
    for each in columns.values():
        each.batch.validate(full=True)
    beside = columns["corrupt"].batch.column("_corrupt").to_pylist()
    reasons = {row: each["reason"] for row, each in enumerate(beside) if each is not None}
    assert all(reasons.values())
    dead = columns["dlq"].dead
    assert ([] if dead is None else dead.column("offset").to_pylist()) == [100 + row for row in reasons]
    assert dead is None or dead.column("reason").to_pylist() == list(reasons.values())
    for name in sides:
        found = columns["null"].batch.column(name).to_pylist()
        assert found == columns["corrupt"].batch.column(name).to_pylist()
        good = [each for row, each in enumerate(found) if row not in reasons]
        assert good == columns["dlq"].batch.column(name).to_pylist()
    for row in reasons:
        raw = batch.slice(row, 1).to_pylist()[0]
        assert (beside[row]["key"], beside[row]["value"]) == (raw["key"], raw["value"])
    if reasons:
        first = min(reasons)
        with pytest.raises(BadRecord) as caught:
            made["fail"].apply(batch)
        assert str(caught.value) == f"the record at offset {100 + first} of orders-1 does not decode: {reasons[first]}"
    else:
        assert made["fail"].apply(batch).batch == columns["null"].batch
    return reasons


UNKNOWN = "the registry has no schema"
FRAMES = {  # what is in front of the payload, and why that is bad
    b"": "the value is empty|is not JSON",
    b"\x05": "begins with byte 5|is not JSON",
    b"\0\0\0": "ends within the schema id",
    b"\x01\0\0": "ends within the schema's GUID",
    b"\0\xff\xff\xff\xff": "the schema id is negative",
    schema_mark(999): f"{UNKNOWN} 999",
    schema_mark(UUID(int=6)): f"{UNKNOWN} {UUID(int=6)}",
    schema_mark(BROKEN): f"schema {BROKEN} cannot be read by",
    schema_mark(REFERRING): f"schema {REFERRING} cannot be read by: it refers to other",
    schema_mark(FOREIGN): f"schema {FOREIGN} cannot be read by: its type is XML",
}


@pytest.mark.parametrize("kind", SOURCES)
def test_frames_that_name_no_usable_schema(kind: str) -> None:
    good = mark(kind, IDS[kind]) + PAYLOADS[kind]
    tail = b"\0" if kind == "protobuf" else b""
    others = {schema_mark(IDS[each]): f"is {SOURCES[each].type.value}, not" for each in SOURCES if each != kind}
    bad = {**FRAMES, **others}
    whole = [front if len(front) < 5 else front + tail + PAYLOADS[kind] for front in bad]
    values = [each for value in whole for each in (good, value)]
    batch = rows([*values, None, good])
    found = verdicts({"value": side(kind, Desk(kind))}, batch)
    # JSON names its fields: the writer's schema is of no account, as long as it is JSON's.
    fine = [schema_mark(BROKEN)] if kind == "json" else []
    expected = [why for front, why in bad.items() if front not in fine]
    reasons = list(found.values())
    for why, reason in zip(expected, reasons, strict=True):
        assert any(each in reason for each in why.split("|")), (why, reason)
    value = (
        TypedColumns({"value": side(kind, Desk(kind))}, "null", False).apply(batch).batch.column("value").to_pylist()
    )
    assert all(value[row] == ROW for row in [*range(0, len(values), 2), len(values) + 1])


@pytest.mark.parametrize("kind", SOURCES)
def test_ids_in_headers(kind: str) -> None:
    def header(value: bytes | None) -> list[dict[str, Any]]:
        return [{"key": "other", "value": b"x"}, {"key": "__value_schema_id", "value": value}]

    payload = PAYLOADS[kind]
    marks = [mark(kind, IDS[kind]), mark(kind, GUID), schema_mark(999, (0,)), b"\x07", b"", b"\0\0"]
    found = verdicts({"value": side(kind, Desk(kind))}, rows([payload] * 6, headers=[header(each) for each in marks]))
    assert list(found) == [2, 3, 4, 5]
    # A header without a value names nothing: what is in front of the payload counts.
    framed = mark(kind, IDS[kind]) + payload
    assert verdicts({"value": side(kind, Desk(kind))}, rows([framed], headers=[header(None)])) == {}


@pytest.mark.parametrize("kind", SOURCES)
def test_keys_and_values_have_one_verdict_together(kind: str) -> None:
    good, bad = mark(kind, IDS[kind]) + PAYLOADS[kind], b"\x07"
    sides = {name: side(kind, Desk(kind), name) for name in ("key", "value")}
    found = verdicts(sides, rows([good, bad, good, bad, None], [good, good, bad, bad, None]))
    assert list(found) == [1, 2, 3]
    assert found[1].startswith("value: ") and found[2].startswith("key: ")
    assert found[3].startswith("key: ") and "; value: " in found[3]


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("framed", [True, False])
def test_null_and_empty_payloads(kind: str, framed: bool) -> None:
    front = mark(kind, IDS[kind]) if framed else b""
    found = verdicts({"value": side(kind, Desk(kind) if framed else None)}, rows([None, front, front + PAYLOADS[kind]]))
    assert list(found) == ([] if kind == "protobuf" else [1])  # an empty message is a message


@pytest.mark.parametrize("kind", SOURCES)
def test_a_writer_that_is_recursive_costs_its_own_rows(kind: str) -> None:
    good = mark(kind, IDS[kind]) + PAYLOADS[kind]
    front = mark(kind, RECURSIVE)
    payload = {"avro": b"\0", "json": b'{"next":{}}', "protobuf": b"\x0a\0"}[kind]
    found = verdicts({"value": side(kind, Desk(kind))}, rows([good, front + payload, good]))
    assert set(found) <= {1}
    assert kind != "avro" or list(found) == [1]


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    ("away", "error"),
    [
        ({"away": True}, RegistryUnreachable),
        ({"status": 503, "body": b"busy"}, RegistryError),
        ({"status": 500, "body": b'{"error_code":50001,"message":"store"}'}, RegistryError),
        ({"status": 401, "body": b'{"error_code":401,"message":"who are you"}'}, RegistryError),
        ({"status": 404, "body": b"<html>no such page</html>"}, RegistryError),
        ({"status": 404, "body": b'{"message":"no route"}'}, RegistryError),
        ({"status": 200, "body": b"<html>please log in</html>"}, RegistryError),
        ({"status": 200, "body": b'{"ok":true}'}, RegistryError),
        ({"status": 200, "body": b"[]"}, RegistryError),
    ],
)
def test_a_registry_that_is_away_is_nobodys_fault(kind: str, away: Any, error: type[Exception]) -> None:
    batch = rows([mark(kind, 999) + PAYLOADS[kind], None])
    for mode in MODES:
        with pytest.raises(error):
            TypedColumns({"value": side(kind, Desk(kind, **away))}, mode, False, "dead").apply(batch)


@st.composite
def mutations(draw: st.DrawFn, kind: str) -> bytes:
    good = mark(kind, IDS[kind]) + PAYLOADS[kind]
    data = bytearray(good)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        cut = draw(st.integers(0, 3))
        data[at : at + cut] = draw(st.binary(max_size=3))
    return bytes(data)


@pytest.mark.parametrize("kind", SOURCES)
def test_any_bytes_have_one_verdict_whatever_is_beside_them(kind: str) -> None:
    good = mark(kind, IDS[kind]) + PAYLOADS[kind]
    sides = {"value": side(kind, Desk(kind))}
    plain = {"value": side(kind, None)}

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(mutations(kind) | st.binary(max_size=12), min_size=1, max_size=6))
    def check(values: list[bytes]) -> None:
        for given_sides, skipped in ((sides, 0), (plain, len(mark(kind, IDS[kind])))):
            own = good[skipped:]
            given_values = [each[skipped:] for each in values]
            together = verdicts(given_sides, rows([each for value in given_values for each in (own, value)]))
            assert all(row % 2 for row in together)
            for place, value in enumerate(given_values):
                alone = verdicts(given_sides, rows([value]))
                assert alone.get(0) == together.get(2 * place + 1)

    check()


def test_a_decoder_that_fails_costs_only_the_rows_that_it_fails_for(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = side("json", None)._own()

    class Failing:
        type = whole.type

        def decode(self, values: pa.Array, begins: Any = 0) -> DecodedColumns:
            if any(value is not None and b"!" in value for value in values.to_pylist()):
                raise pa.ArrowInvalid("a column call")
            return whole.decode(values, begins)

    monkeypatch.setattr("ottla.spark.typed.key_or_value.decoder_of", lambda *_: Failing())
    good = PAYLOADS["json"]
    found = verdicts({"value": side("json", None)}, rows([good, b'{"who":"!"}', good, None, b"!", good, b"{"]))
    assert list(found) == [1, 4, 6]
    assert found[1] == "value: it cannot be decoded: ArrowInvalid a column call"


def test_dead_letters_of_records_with_odd_times_and_headers() -> None:
    headers = [{"key": PREFIX + "offset", "value": b"9"}, {"key": "own", "value": None}]
    batch = rows([b"{"] * 3, headers=[headers, None, []])
    times = pa.array([2**62, -(2**62), -1000], pa.int64()).view(TYPES["timestamp"])
    batch = batch.set_column(batch.schema.get_field_index("timestamp"), "timestamp", times)
    dead = TypedColumns({"value": side("json", None)}, "dlq", False, "dead").apply(batch).dead
    assert dead is not None
    made = list(letters(dead))
    said = [dict(each.headers) for each in made]
    times_ms = [time // 1000 for time in (2**62, -(2**62), -1000)]
    assert [each[PREFIX + "timestamp"] for each in said] == [b"%d" % time_ms for time_ms in times_ms]
    assert [each[PREFIX + "offset"] for each in said] == [b"100", b"101", b"102"]
    assert made[0].headers[0] == ("own", None) and made[0].value == b"{"


def test_a_batch_goes_on_when_its_dead_letters_are_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.spark.read import reader

    sent: list[int] = []
    settings_double = SimpleNamespace(columns=("value", "offset"), kafka=SimpleNamespace(client_options=str))
    shape = SimpleNamespace(typed=TypedColumns({"value": side("json", None)}, "dlq", False, "dead"))

    def send(options: Any, topic: str, dead: pa.RecordBatch) -> None:
        sent.extend(dead.column("offset").to_pylist())
        if len(sent) > 1:
            raise ConnectionError("the broker is away")

    batches = [rows([PAYLOADS["json"], b"{"]), rows([PAYLOADS["json"]]), rows([b"{", b"}"])]
    monkeypatch.setattr(reader, "read_range", lambda *_: iter(batches))
    monkeypatch.setattr("ottla.spark.typed.dead_letters.send_dead", send)
    made = reader._typed(cast(Any, settings_double), cast(Any, shape), cast(Any, None), "task")
    assert next(made).column("offset").to_pylist() == [100] and sent == [101]
    assert next(made).num_rows == 1
    with pytest.raises(ConnectionError):
        next(made)


class Registered:
    """What a broker knows of the schemas, by id or GUID."""

    def __init__(self, kind: str) -> None:
        known = {**{IDS[name]: each for name, each in SOURCES.items()}, GUID: SOURCES[kind]}
        self._known = {identity: KnownSchema(source) for identity, source in known.items()}

    def find(self, identity: int | UUID) -> Any:
        return self._known.get(identity)


class KnownSchema:
    def __init__(self, source: SchemaSource) -> None:
        self.type = source.type
        self.subjects = frozenset({"orders-key", "orders-value"})
        self.why_unreadable = reader_of(source)


# What a contract refuses although it is read: it wants the whole payload to be the value (Avro's readers stop behind
# it), a schema's name in front of every value (JSON may come plain), and values of the schema's own types alone.
STRICTER = ("are left over behind the value", "begins with byte", "value is empty", "is not of type")


@pytest.mark.parametrize("kind", SOURCES)
def test_what_a_contract_lets_in_is_read(kind: str) -> None:
    cache: Any = SimpleNamespace(known=Registered(kind))
    terms = ContractTerms(full=True, of="value", own_subjects=True, action="reject", dead_letters="")
    contract = RecordCheck(cache, "orders", terms)
    sides = {"value": side(kind, Desk(kind))}
    header = {"key": "__value_schema_id", "value": mark(kind, GUID)}
    others = [schema_mark(IDS[each], (0,)) + PAYLOADS[kind] for each in SOURCES if each != kind]
    usual = [mark(kind, IDS[kind]) + PAYLOADS[kind], mark(kind, GUID) + PAYLOADS[kind], b"", b"\0\0", None, *others]

    def check(values: list[bytes | None], with_header: bool) -> None:
        given_headers = [header] if with_header else None
        batch = rows(values, headers=[given_headers] * len(values))
        bad = TypedColumns(sides, "dlq", False, "dead").apply(batch).dead
        refused = [] if bad is None else [offset - 100 for offset in bad.column("offset").to_pylist()]
        pairs = ((header["key"], header["value"]),) if with_header else ()
        found = contract.faults([Record(row, 0, None, value, cast(Any, pairs)) for row, value in enumerate(values)])
        for row, value in enumerate(values):
            assert row in found or row not in refused, f"{value!r} is let in, and not read"
            assert row in refused or any(each in found.get(row, STRICTER[0]) for each in STRICTER), (value, found[row])

    check(usual, False)

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(mutations(kind) | st.binary(max_size=12), min_size=1, max_size=8), st.booleans())
    def check_any(values: list[bytes], with_header: bool) -> None:
        front = len(mark(kind, IDS[kind])) if with_header else 0
        check([each[front:] for each in values], with_header)

    check_any()
