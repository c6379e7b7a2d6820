"""The machine under any sequence of commands: reading the records gives the same state, also after compaction; ids are
never given out twice; equal schemas share one; versions of a subject go up."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.model.limits import INT32_MAX, SCHEMA_ID_CONTINUED_MAX
from ottla.schemas.compatibility import Level
from ottla.schemas.registry.commands import (
    DeleteConfig,
    DeleteContext,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    Register,
    RegistryCommand,
    SetConfig,
    SetMode,
)
from ottla.schemas.registry.entities import Mode, SchemaDraft, SubjectVersion
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.names import beside, context_of
from ottla.schemas.registry.records import HighestIdsEntry, RegistryRecord, decode
from ottla.schemas.registry.refusal import RegistryRefusal
from ottla.schemas.schema import Reference

SUBJECTS = st.sampled_from(["a", "b", ":.west:a"])
SETTABLE = st.sampled_from([None, "a", ":.west:", ":.west:a", ":.__GLOBAL:"])
IMPORTED = st.integers(1, 6) | st.sampled_from([INT32_MAX - 1, INT32_MAX])
VERSIONS = st.sampled_from([-1, 1, 2, 3])
LEVELS = st.sampled_from(["NONE", "BACKWARD", "FULL_TRANSITIVE", None])
# Most of what can be done wants READWRITE, so that is what comes most.
MODES = st.sampled_from([Mode.READWRITE] * 4 + [Mode.READONLY, Mode.IMPORT, None])


def schema(number: int, name: str = "Inner") -> str:
    """Those of one name are compatible with each other, but 3, which does not read the others."""
    field = {"name": f"f{number}", "type": "int", **({} if number == 3 else {"default": 0})}
    return json.dumps({"type": "record", "name": name, "fields": [field]})


class Sequences(RuleBasedStateMachine):
    """Commands as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = RegistryMachine(Level.NONE)
        self.records: list[RegistryRecord] = []
        self.now_ms = 0
        # What an id stood for, ever, and who was given it as new.
        self.meaning: dict[tuple[str, int], str] = {}

    def submit(self, command: RegistryCommand) -> Any:
        self.now_ms += 1
        before = describe(self.machine)
        try:
            result = self.machine.decide(command, self.now_ms)
        except RegistryRefusal:
            assert describe(self.machine) == before
            return None
        assert describe(self.machine) == before, "deciding changes nothing"
        for record in result.records:
            self.machine.apply(record)
        self.records += result.records
        return result.reply

    @rule(subject=SUBJECTS, number=st.integers(0, 4), to=st.none() | SUBJECTS, version=VERSIONS, named=st.booleans())
    def register(self, subject: str, number: int, to: str | None, version: int, named: bool) -> None:
        references = () if to is None else (Reference("Inner", to, version),)
        text = schema(number) if to is None else schema(number, "Outer")
        metadata = {"properties": {"number": str(number)}} if named else None
        known = {key for key, _ in self.meaning.items()}
        highest = dict(self.machine.state.highest)
        it = self.submit(Register(subject, SchemaDraft(text, references=references, metadata=metadata)))
        if it is None:
            return
        context = context_of(subject)
        assert self.machine.state.get(subject, it.version) == it
        if (context, it.id) not in known:
            assert it.id == highest.get(context, 0) + 1
            twins = [each for each in self.machine.state.with_digest(context, it.digest) if each != it]
            assert not twins, "equal schemas share an id, unless they were imported with several"
        again = self.machine.decide(Register(subject, SchemaDraft(it.text, None, it.references, it.metadata)), 0)
        assert (again.reply, list(again.records)) == (it, [])

    @rule(subject=SUBJECTS, number=st.integers(0, 2))
    def register_plainly(self, subject: str, number: int) -> None:
        self.register(subject, number, None, 0, False)

    @rule(subject=SUBJECTS, to=st.sampled_from(["a", "b"]), number=st.integers(0, 2))
    def refer(self, subject: str, to: str, number: int) -> None:
        self.register(subject, number, to, -1, False)

    @rule(subject=SUBJECTS)
    def delete_for_good(self, subject: str) -> None:
        for permanent in (False, True):
            self.delete_subject(subject, permanent)

    @rule(subject=SUBJECTS, number=st.integers(0, 4), schema_id=IMPORTED, version=st.integers(1, 4))
    def bring(self, subject: str, number: int, schema_id: int, version: int) -> None:
        """Registered with an id, as imports are. Only an import may bring an old id back."""
        if (context_of(subject), schema_id) in self.meaning:
            return
        self.submit(Register(subject, SchemaDraft(schema(number), id=schema_id, version=version)))

    @rule(subject=SUBJECTS, version=VERSIONS, permanent=st.booleans())
    def delete_version(self, subject: str, version: int, permanent: bool) -> None:
        gone = self.submit(DeleteVersion(subject, version, permanent))
        if gone is not None:
            it = self.machine.state.get(subject, gone)
            assert it is None if permanent else it is not None and it.deleted

    @rule(subject=SUBJECTS, permanent=st.booleans())
    def delete_subject(self, subject: str, permanent: bool) -> None:
        if self.submit(DeleteSubject(subject, permanent)) is not None:
            assert all(it.deleted for it in self.machine.state.versions(subject))
            assert not permanent or subject not in self.machine.state.subjects

    @rule(subject=SETTABLE, level=LEVELS, normalize=st.sampled_from([True, False, None]))
    def set_config(self, subject: str | None, level: str | None, normalize: bool | None) -> None:
        self.submit(SetConfig(subject, {"compatibilityLevel": level, "normalize": normalize}))

    @rule(subject=SETTABLE)
    def delete_config(self, subject: str | None) -> None:
        self.submit(DeleteConfig(subject))

    @rule(subject=SETTABLE, mode=MODES, force=st.booleans())
    def set_mode(self, subject: str | None, mode: Mode | None, force: bool) -> None:
        self.submit(SetMode(subject, mode, force))

    @rule(subject=SETTABLE, recursive=st.booleans())
    def delete_mode(self, subject: str | None, recursive: bool) -> None:
        self.submit(DeleteMode(subject, recursive))

    @rule()
    def delete_context(self) -> None:
        self.submit(DeleteContext(".west"))

    @precondition(lambda self: self.records)
    @rule(keep_tombstones=st.booleans())
    def compact(self, keep_tombstones: bool) -> None:
        """The topic is compacted and read anew: all goes on from there."""
        newest = {record.key: number for number, record in enumerate(self.records)}
        kept = [record for number, record in enumerate(self.records) if newest[record.key] == number]
        self.records = [record for record in kept if keep_tombstones or record.value is not None]
        before = self.machine
        self.machine = replayed(self.records)
        assert describe(self.machine) == describe(before)

    @invariant()
    def the_records_are_the_state(self) -> None:
        assert describe(replayed(self.records)) == describe(self.machine)

    @invariant()
    def an_id_means_one_thing_for_ever(self) -> None:
        state = self.machine.state
        for it in state.all():
            key = (context_of(it.subject), it.id)
            assert self.meaning.setdefault(key, it.text) == it.text
            assert it.id <= state.highest.get(key[0], 0) or it.id > SCHEMA_ID_CONTINUED_MAX

    @invariant()
    def references_lead_somewhere(self) -> None:
        for it in self.machine.state.all():
            for reference in it.references:
                assert self.machine.state.get(beside(it.subject, reference.subject), reference.version) is not None

    @invariant()
    def indexes_hold_what_is_there(self) -> None:
        state = self.machine.state
        for it in state.all():
            context = context_of(it.subject)
            assert it in state.with_id(context, it.id)
            assert it in list(state.with_digest(context, it.digest))


def replayed(records: list[RegistryRecord]) -> RegistryMachine:
    machine = RegistryMachine(Level.NONE)
    for record in records:
        machine.apply(record)
    return machine


def describe(machine: RegistryMachine) -> tuple[Any, ...]:
    """All that can be asked. (How often the highest ids were written down, and in which order, cannot.)"""
    state = machine.state
    everything: list[SubjectVersion] = list(state.all())
    ids = sorted({(context_of(it.subject), it.id) for it in everything})
    referred = sorted({(it.subject, it.version) for it in everything})
    return (
        everything,
        {subject: dict(config) for subject, config in state.configs.items()},
        dict(state.modes),
        state.contexts_in_use(),
        dict(state.highest),
        [state.with_id(context, schema_id) for context, schema_id in ids],
        [state.referrers(subject, version) for subject, version in referred],
    )


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


def test_the_highest_id_is_written_down_once() -> None:
    """Only when the record that shows it goes, and only if it is not written down yet."""
    machine = RegistryMachine()
    notes: list[HighestIdsEntry] = []

    def submit(command: RegistryCommand) -> None:
        for record in machine.decide(command, 0).records:
            machine.apply(record)
            entry = decode(record)
            if isinstance(entry, HighestIdsEntry):
                notes.append(entry)

    for number in range(3):
        submit(Register(f"s{number}", SchemaDraft(schema(number))))
        submit(DeleteSubject(f"s{number}"))
    assert notes == []
    for number in range(3):
        submit(DeleteSubject(f"s{number}", permanent=True))
    assert notes == [HighestIdsEntry({".": 3})]


def test_no_import_uses_up_the_ids() -> None:
    """New ids go on after imported ones; those in the upper half are only skipped. Replaying shows the same."""
    records: list[RegistryRecord] = []
    machine = RegistryMachine(Level.NONE)

    def submit(command: RegistryCommand) -> Any:
        result = machine.decide(command, len(records))
        for record in result.records:
            machine.apply(record)
        records.extend(result.records)
        return result.reply

    def bring(schema_id: int) -> None:
        submit(SetMode("i", Mode.IMPORT, force=True))
        submit(Register("i", SchemaDraft(schema(schema_id), id=schema_id, version=7)))
        submit(DeleteMode("i"))

    def new_id(number: int) -> int:
        reply: SubjectVersion = submit(Register("a", SchemaDraft(schema(20 + number))))
        assert describe(replayed(records)) == describe(machine)
        return reply.id

    bring(INT32_MAX)
    assert new_id(1) == 1
    submit(DeleteSubject("i"))
    submit(DeleteSubject("i", permanent=True))
    assert new_id(2) == 2
    bring(100)
    assert new_id(3) == 101
    bring(SCHEMA_ID_CONTINUED_MAX + 2)
    assert new_id(4) == 102
    submit(SetMode("a", Mode.IMPORT, force=True))
    submit(Register("a", SchemaDraft(schema(0), id=SCHEMA_ID_CONTINUED_MAX, version=20)))
    submit(DeleteMode("a"))
    assert [new_id(5), new_id(6)] == [SCHEMA_ID_CONTINUED_MAX + 1, SCHEMA_ID_CONTINUED_MAX + 3]
