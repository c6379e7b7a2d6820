"""The records of `_schemas`: the bytes that Confluent's registry writes, and reading what it wrote."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from ottla.schemas.registry.entities import Mode, SubjectVersion
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.records import (
    BadRegistryRecord,
    ClearSubjectEntry,
    ContextEntry,
    DeleteSubjectEntry,
    HighestIdsEntry,
    ModeEntry,
    NothingEntry,
    RegistryEntry,
    RegistryRecord,
    SchemaEntry,
    SettingsEntry,
    decode,
    encode,
)
from ottla.schemas.schema import Reference

DIGEST = bytes.fromhex("d41d8cd98f00b204e9800998ecf8427e")
PLAIN = SubjectVersion("s", 1, 7, '"string"')
FULL = SubjectVersion(
    ":.west:s",
    2,
    8,
    "message",
    "PROTOBUF",
    (Reference("a.proto", "a", 3),),
    {"properties": {"owner": "ann"}},
    {"domainRules": [{"name": "r"}]},
    deleted=True,
)

# What an entry is written as: its key, its value.
WRITTEN: list[tuple[RegistryEntry, str, str | None]] = [
    (
        SchemaEntry("s", 1, PLAIN),
        '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
        '{"subject":"s","version":1,"id":7,"schema":"\\"string\\"","deleted":false}',
    ),
    (
        SchemaEntry(":.west:s", 2, FULL),
        '{"keytype":"SCHEMA","subject":":.west:s","version":2,"magic":1}',
        '{"subject":":.west:s","version":2,"id":8,"schemaType":"PROTOBUF","references":[{"name":"a.proto","subject":"a",'
        '"version":3}],"metadata":{"properties":{"owner":"ann"}},"ruleSet":{"domainRules":[{"name":"r"}]},'
        '"schema":"message","deleted":true}',
    ),
    (SchemaEntry("ü", 1, None), '{"keytype":"SCHEMA","subject":"ü","version":1,"magic":1}', None),
    (
        SettingsEntry(None, {"compatibilityLevel": "FULL"}),
        '{"keytype":"CONFIG","magic":0}',
        '{"compatibilityLevel":"FULL"}',
    ),
    (
        SettingsEntry("s", {"compatibilityLevel": "NONE", "normalize": False, "alias": ""}),
        '{"keytype":"CONFIG","subject":"s","magic":0}',
        '{"subject":"s","normalize":false,"compatibilityLevel":"NONE"}',
    ),
    (SettingsEntry("s", None), '{"keytype":"CONFIG","subject":"s","magic":0}', None),
    (ModeEntry(None, Mode.IMPORT), '{"keytype":"MODE","magic":0}', '{"mode":"IMPORT"}'),
    (ModeEntry("s", Mode.READONLY), '{"keytype":"MODE","subject":"s","magic":0}', '{"subject":"s","mode":"READONLY"}'),
    (
        DeleteSubjectEntry("s", 3),
        '{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}',
        '{"subject":"s","version":3}',
    ),
    (ClearSubjectEntry("s"), '{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}', '{"subject":"s"}'),
    (ClearSubjectEntry(None), '{"keytype":"CLEAR_SUBJECT","magic":0}', "{}"),
    (
        ContextEntry(".west"),
        '{"keytype":"CONTEXT","tenant":"default","context":".west","magic":0}',
        '{"tenant":"default","context":".west"}',
    ),
    (
        ContextEntry(".west", exists=False),
        '{"keytype":"CONTEXT","tenant":"default","context":".west","magic":0}',
        None,
    ),
    (NothingEntry(), '{"keytype":"NOOP","magic":0}', None),
    (
        HighestIdsEntry({".": 7, ".west": 1}),
        '{"keytype":"NOOP","magic":0,"for":"ottla.highest.ids"}',
        '{"highestIds":{".":7,".west":1}}',
    ),
]


@pytest.mark.parametrize(("entry", "key", "value"), WRITTEN)
def test_entries_are_written_as_confluent_writes_them(entry: RegistryEntry, key: str, value: str | None) -> None:
    record = encode(entry, 5)
    assert (record.key.decode(), None if record.value is None else record.value.decode()) == (key, value)
    assert (record.timestamp_ms, record.headers) == (5, ())


@pytest.mark.parametrize("entry", [entry for entry, _, _ in WRITTEN])
def test_what_is_written_is_read_again(entry: RegistryEntry) -> None:
    record = encode(entry, 5)
    assert encode(decode(record), 5) == record


def written_by_confluent(*pairs: tuple[str, str | None]) -> RegistryMachine:
    machine = RegistryMachine()
    for number, (key, value) in enumerate(pairs):
        machine.apply(RegistryRecord(key.encode(), None if value is None else value.encode(), (), 1_000 + number))
    return machine


def test_a_topic_that_confluents_registry_wrote_is_loaded() -> None:
    """Of several releases: with and without schemaType, with md5, fields nobody here knows, legacy settings."""
    machine = written_by_confluent(
        ('{"keytype":"NOOP","magic":0}', None),
        ('{"keytype":"CONFIG","magic":0}', '{"compatibilityLevel":"NONE"}'),
        (
            '{"keytype":"SCHEMA","subject":"s","version":1,"magic":0}',
            '{"subject":"s","version":1,"id":1,"schema":"\\"int\\"","deleted":false}',
        ),
        (
            '{"keytype":"SCHEMA","subject":"s","version":2,"magic":1}',
            '{"subject":"s","version":2,"id":2,"schemaType":"AVRO","references":[],"schema":"\\"long\\"",'
            '"deleted":false,"offset":17}',
        ),
        (
            '{"keytype":"SCHEMA","subject":":.west:j","version":1,"magic":1}',
            '{"subject":":.west:j","version":1,"id":1,"md5":"'
            + b64encode(DIGEST).decode()
            + '","schemaType":"JSON","metadata":{"properties":{"a":"b"}},"schema":"{}","deleted":false}',
        ),
        (
            '{"keytype":"CONTEXT","tenant":"default","context":".west","magic":0}',
            '{"tenant":"default","context":".west"}',
        ),
        ('{"keytype":"MODE","subject":"s","magic":0}', '{"subject":"s","mode":"READONLY"}'),
        ('{"keytype":"CONFIG","subject":"s","magic":0}', '{"compatibilityLevel":"FULL_TRANSITIVE"}'),
        ('{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', '{"subject":"s","version":1}'),
        ('{"keytype":"ASSOC","tenant":"default","resourceName":"r","magic":0}', '{"guid":"x"}'),
    )
    state = machine.state
    assert [(it.subject, it.version, it.id, it.type, it.deleted) for it in state.all()] == [
        (":.west:j", 1, 1, "JSON", False),
        ("s", 1, 1, "AVRO", True),
        ("s", 2, 2, "AVRO", False),
    ]
    assert state.subjects["s"][2].timestamp_ms == 1_003
    assert state.subjects[":.west:j"][1].digest == DIGEST
    assert state.contexts_in_use() == [".", ".west"]
    assert state.highest == {".": 2, ".west": 1}
    assert machine.scope.level("s").value == "FULL_TRANSITIVE"
    assert machine.scope.level("other").value == "NONE"
    assert machine.scope.mode("s") is Mode.READONLY


def test_a_second_schema_with_the_same_id_is_not_taken() -> None:
    """Two leaders of Confluent's registry could write that; the first one counts, as there."""
    value = '{{"subject":"s","version":{},"id":1,"schema":"\\"{}\\"","deleted":false}}'
    key = '{{"keytype":"SCHEMA","subject":"s","version":{},"magic":1}}'
    machine = written_by_confluent((key.format(1), value.format(1, "int")), (key.format(2), value.format(2, "long")))
    assert [it.version for it in machine.state.all()] == [1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b""),
        (b"{", b"{}"),
        (b"\xff\xfe", None),
        (b"[]", b"{}"),
        (b"[" * 100_000, b"{}"),
        (b'{"keytype":"SCHEMA"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b"7"),
        (b'{"keytype":"SCHEMA","subject":"s","version":"1"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":7,"version":1}', None),
        (b'{"keytype":"SCHEMA","subject":"s","version":true}', None),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1,"schema":"x","references":[7]}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1,"schema":"x","md5":"!"}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1,"schema":"x","metadata":7}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1,"schema":"x","ruleSet":{"domainRules":[7]}}'),
        (b'{"keytype":"MODE"}', b'{"mode":"SOMETIMES"}'),
        (b'{"keytype":"MODE","subject":[]}', b'{"mode":"IMPORT"}'),
        (b'{"keytype":"CONFIG","subject":{}}', b"{}"),
        (b'{"keytype":"CONFIG"}', b'{"compatibilityLevel":"BAD"}'),
        (b'{"keytype":"CONFIG"}', b'{"alias":7}'),
        (b'{"keytype":"CONFIG"}', b'{"defaultMetadata":[7]}'),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s"}', b'{"version":"x"}'),
        (b'{"keytype":"CONTEXT","context":7}', b"{}"),
        (b'{"keytype":"NOOP","magic":0,"for":"ottla.highest.ids"}', b'{"highestIds":[]}'),
    ],
)
def test_nonsense_in_the_topic_is_passed_over(key: bytes, value: bytes | None) -> None:
    record = RegistryRecord(key, value)
    with pytest.raises(BadRegistryRecord):
        decode(record)
    machine = RegistryMachine()
    before = json.dumps({k: str(v) for k, v in vars(machine.state).items()})
    (change,) = machine.apply(record)
    assert type(change).__name__ == "Ignored"
    assert json.dumps({k: str(v) for k, v in vars(machine.state).items()}) == before
