"""What a connection remembers of the authorizer's decisions, and when it forgets it."""

from __future__ import annotations

import tracemalloc

import pytest

from ottla.model import limits
from ottla.security.acls import CLUSTER_NAME, AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.security.principal import Principal

ALICE = Principal.user("alice")
READ, WRITE, TOPIC, GROUP = AclOperation.READ, AclOperation.WRITE, AclResourceType.TOPIC, AclResourceType.GROUP


class Counting:
    """Allows what is listed, and counts the questions."""

    def __init__(self, *allowed: tuple[AclOperation, AclResourceType, str]) -> None:
        self.version = 1
        self.allowed = set(allowed)
        self.questions: list[tuple[Principal, str, AclOperation, AclResourceType, str]] = []

    def allows(
        self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType, name: str
    ) -> bool:
        self.questions.append((principal, host, operation, resource, name))
        return (operation, resource, name) in self.allowed

    def allows_some(self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType) -> bool:
        return any((operation, resource) == each[:2] for each in self.allowed)


def test_each_question_is_asked_once() -> None:
    rules = Counting((WRITE, TOPIC, "t"))
    decisions = Decisions(rules, ALICE, "10.0.0.1")
    for _ in range(3):
        assert decisions.allows(WRITE, TOPIC, "t")
        assert not decisions.allows(READ, TOPIC, "t")
        assert not decisions.allows(WRITE, GROUP, "t")
        assert not decisions.allows(WRITE, TOPIC, "u")
    assert rules.questions == [
        (ALICE, "10.0.0.1", WRITE, TOPIC, "t"),
        (ALICE, "10.0.0.1", READ, TOPIC, "t"),
        (ALICE, "10.0.0.1", WRITE, GROUP, "t"),
        (ALICE, "10.0.0.1", WRITE, TOPIC, "u"),
    ]


def test_the_next_change_is_heeded() -> None:
    rules = Counting((WRITE, TOPIC, "t"))
    decisions = Decisions(rules, ALICE, "10.0.0.1")
    assert decisions.allows(WRITE, TOPIC, "t")
    decisions.note_writable("t")
    decisions.producing = "id"
    rules.allowed = {(READ, TOPIC, "t")}
    rules.version += 1
    assert not decisions.allows(WRITE, TOPIC, "t")
    assert decisions.allows(READ, TOPIC, "t")
    assert not decisions.writable
    assert decisions.producing is None
    assert decisions.version == rules.version


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DECISIONS_PER_CONNECTION_MAX", 10)
    rules = Counting()
    decisions = Decisions(rules, ALICE, "10.0.0.1")
    for number in range(1_000):
        decisions.allows(READ, TOPIC, str(number))
        decisions.note_writable(str(number))
        assert sum(map(len, decisions._known.values())) <= 10
        assert len(decisions.writable) <= 10
    assert not decisions.allows(READ, TOPIC, "999")
    assert len(rules.questions) == 1_000


def test_the_memory_is_bounded_for_names_of_any_length() -> None:
    decisions = Decisions(Counting(), ALICE, "10.0.0.1")
    for length in (40, 249, 400, 32_000):
        for kind in ("a", "\N{GRINNING FACE}"):
            names = [f"{number}-" + kind * length for number in range(50)]
            tracemalloc.start()
            for turn in range(20):
                for name in names:
                    asked = f"{turn}-{name}"  # as decoded from a request, which is gone afterwards
                    decisions.allows(READ, TOPIC, asked)
                    decisions.note_writable(asked)
                    decisions.note_producing(asked)
            decisions.authorizer.questions.clear()  # type: ignore[attr-defined]
            kept, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            decisions._forget()
            assert kept < 300_000, f"{kept} bytes of names of {length} {kind}"


def test_the_longest_names_of_topics_are_remembered() -> None:
    rules = Counting((WRITE, TOPIC, "t" * 249))
    decisions = Decisions(rules, ALICE, "10.0.0.1")
    decisions.note_writable("t" * 249)
    decisions.note_producing("i" * 249)
    assert all(decisions.allows(WRITE, TOPIC, "t" * 249) for _ in range(3))
    assert len(rules.questions) == 1
    assert decisions.writable == {"t" * 249}
    assert decisions.producing == "i" * 249


def test_questions_about_everything_are_not_remembered() -> None:
    rules = Counting((READ, TOPIC, "t"))
    decisions = Decisions(rules, ALICE, "10.0.0.1")
    assert decisions.allows_now(READ, TOPIC, "t")
    assert decisions.allows_now(READ, TOPIC, "t")
    assert len(rules.questions) == 2
    assert not decisions._known


def test_what_no_client_asked_for_is_decided_in_silence() -> None:
    rules, silent = Counting((READ, TOPIC, "t")), Counting((READ, TOPIC, "t"))
    decisions = Decisions(rules, ALICE, "10.0.0.1", silent)
    assert decisions.allows_now(READ, TOPIC, "t") and not decisions.allows_now(READ, TOPIC, "u")
    assert not rules.questions and len(silent.questions) == 2
    assert decisions.allows(READ, TOPIC, "t")
    assert len(rules.questions) == 1 and len(silent.questions) == 2


def test_whether_there_is_some_resource_is_remembered_until_the_next_change() -> None:
    rules = Counting()
    decisions = Decisions(rules, ALICE, "10.0.0.1")
    assert not decisions.allows_some(WRITE, TOPIC)
    rules.allowed = {(WRITE, TOPIC, "t")}
    assert not decisions.allows_some(WRITE, TOPIC)
    rules.version += 1
    assert decisions.allows_some(WRITE, TOPIC)


def test_the_cluster_and_some_resource() -> None:
    rules = Counting((AclOperation.ALTER, AclResourceType.CLUSTER, CLUSTER_NAME), (WRITE, TOPIC, "t"))
    decisions = Decisions(rules, ALICE, "10.0.0.1")
    assert decisions.allows_on_cluster(AclOperation.ALTER)
    assert not decisions.allows_on_cluster(AclOperation.CREATE)
    assert decisions.allows_some(WRITE, TOPIC)
    assert not decisions.allows_some(WRITE, GROUP)
