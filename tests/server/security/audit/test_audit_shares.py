"""What one client can fill of the audit log: events, characters, bytes; and files that stay within their size."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.server.security.audit.test_audit_log import security, settings

from ottla.client.admin import Admin
from ottla.client.blocking.blocking import Blocking
from ottla.client.connection import Connection
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.audit_event import AuditKind
from ottla.security.principal import ANONYMOUS, Principal
from ottla.server.security.audit.log import AuditLog
from ottla.server.security.audit.sinks import AuditFile
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

MALLORY, ALICE = Principal.user("mallory"), Principal.user("alice")
DEFAULT = [AuditKind.REFUSED, AuditKind.CHANGES, AuditKind.AUTHENTICATION]
Resource = IncrementalAlterConfigsRequest.AlterConfigsResource


def alter(audit: AuditLog, principal: Principal, topic: str) -> None:
    audit.note_access(principal, "h", AclOperation.ALTER_CONFIGS, AclResourceType.TOPIC, topic, True)


def written(audit: AuditLog) -> list[dict[str, Any]]:
    """What is written next."""
    return [json.loads(line) for line in audit.take()]


def test_allowed_changes_of_one_client_do_not_push_out_the_others() -> None:
    audit = AuditLog(DEFAULT, lambda: 0)
    for number in range(50_000):
        alter(audit, MALLORY, f"mine-{number}")
    alter(audit, ALICE, "t")
    audit.note_change(MALLORY, "h", "CreateAcls", "an entry")
    events = written(audit)
    assert len(events) == limits.AUDIT_SHARE_EVENTS_MAX + 3
    assert {(each["principal"], each["resource"]) for each in events} >= {
        ("User:alice", "t"),
        ("User:mallory", "CreateAcls"),  # what is of another sort is not hidden by the flood
    }
    left_out = 50_000 - limits.AUDIT_SHARE_EVENTS_MAX
    assert events[-1]["action"] == f"{left_out} more events by User:mallory on topics"


def test_clients_that_are_not_authenticated_share_by_address() -> None:
    """One of them cannot hide what another did, although all have the same principal."""
    audit = AuditLog(DEFAULT, lambda: 0)

    def refuse(host: str, topic: str) -> None:
        audit.note_access(ANONYMOUS, host, AclOperation.READ, AclResourceType.TOPIC, topic, False)

    for number in range(limits.AUDIT_SHARE_EVENTS_MAX + 5):
        refuse("10.0.0.1", f"t{number}")
    refuse("10.0.0.2", "payroll")
    events = written(audit)
    assert [each["resource"] for each in events if each["host"] == "10.0.0.2"] == ["payroll"]
    summary = events[-1]
    assert summary["action"] == "5 more refusals by User:ANONYMOUS from 10.0.0.1 on topics"
    assert (summary["principal"], summary["host"]) == (str(ANONYMOUS), "10.0.0.1")


def test_requests_and_logins_are_counted_by_sort() -> None:
    audit = AuditLog(DEFAULT, lambda: 0)
    for _ in range(limits.AUDIT_SHARE_EVENTS_MAX + 7):
        audit.note_change(MALLORY, "h", "CreateTopics", "t")
        audit.note_login("User:mallory", "h", "SASL", "PLAIN")
        audit.note_failed_login("alice", "10.0.0.7", "SASL", "PLAIN", "wrong")
    audit.note_failed_login("alice", "10.0.0.8", "SASL", "PLAIN", "wrong")
    events = written(audit)
    assert [each["action"] for each in events[-3:]] == [
        "7 more requests CreateTopics by User:mallory",
        "7 more logins by User:mallory",
        "7 more failed logins by 10.0.0.7",
    ]
    assert len(events) == 3 * limits.AUDIT_SHARE_EVENTS_MAX + 1 + 3


def test_a_minute_has_a_bound_and_the_next_one_begins_anew() -> None:
    now_ms, size = [0], 0
    audit = AuditLog(DEFAULT, lambda: now_ms[0])
    for second in range(60):
        now_ms[0] = second * 1_000
        for number in range(limits.AUDIT_SHARE_EVENTS_MAX):
            alter(audit, MALLORY, f"{number}" + "é" * 30_000)
        alter(audit, ALICE, f"t{second}")
        events = written(audit)
        assert f"t{second}" in {each["resource"] for each in events}
        assert len(events) <= limits.AUDIT_SHARE_EVENTS_MAX + 1
        size += sum(len(json.dumps(each)) for each in events if "mallory" in each["principal"])
    summaries = 60 * 300
    longest = 10 * limits.AUDIT_FIELD_CHARACTERS_MAX
    assert limits.AUDIT_SHARE_BYTES_PER_MINUTE < size < limits.AUDIT_SHARE_BYTES_PER_MINUTE + longest + summaries
    now_ms[0] += limits.AUDIT_SHARE_MS
    alter(audit, MALLORY, "again")
    assert [each["resource"] for each in written(audit)] == ["again"]
    now_ms[0] = 5  # the clock was set back
    alter(audit, MALLORY, "before")
    assert [each["resource"] for each in written(audit)] == ["before"]


def test_clients_without_a_share_of_their_own_have_one_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AUDIT_SHARES_MAX", 2)
    audit = AuditLog(DEFAULT, lambda: 0)
    alter(audit, ALICE, "t")
    alter(audit, MALLORY, "t")
    for number in range(limits.AUDIT_SHARE_EVENTS_MAX + 5):
        alter(audit, Principal.user(f"u{number}"), "t")
    alter(audit, ALICE, "own")
    events = written(audit)
    assert events[-1]["action"] == "5 more events by others on topics"
    assert events[-2]["resource"] == "own"


def test_fields_are_cut() -> None:
    audit = AuditLog(DEFAULT, lambda: 0)
    long = "x" * 30_000
    alter(audit, Principal.user(long), long)
    audit.note_change(ALICE, long, "CreateTopics", long)
    audit.note_failed_login(long, long, long, "PLAIN", long)
    access, change, login = written(audit)
    assert access["resource"] == "x" * (limits.AUDIT_FIELD_CHARACTERS_MAX - 1) + "…"
    assert (
        len(access["principal"]) == len(change["host"]) == len(login["resource"]) == limits.AUDIT_FIELD_CHARACTERS_MAX
    )
    assert len(change["named"]) == len(login["claimed"]) == limits.AUDIT_NAMES_CHARACTERS_MAX


def test_no_file_exceeds_its_size_and_no_line_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AUDIT_FILE_BYTES_MAX", 100)
    sink = AuditFile(str(tmp_path / "audit.log"), None)  # type: ignore[arg-type]
    lines = [f"line {number:04}" for number in range(40)]  # ten bytes each, with the end of the line
    for first in range(0, 40, 8):
        sink._append(lines[first : first + 8])
    files = [tmp_path / f"audit.log{end}" for end in (".3", ".2", ".1", "")]
    assert [each.stat().st_size for each in files] == [100, 100, 100, 100]
    assert "".join(each.read_text() for each in files).split("\n")[:-1] == lines
    sink._append(["long" * 100, "next"])
    assert files[2].read_text() == "long" * 100 + "\n"
    assert files[3].read_text() == "next\n"


def test_a_request_that_only_validates_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with EmbeddedBroker(tmp_path / "data", settings(to="file", file=str(path))) as broker:
        with Blocking(broker.bootstrap, security=security("admin")) as client:
            own = AclEntry(
                AclResourceType.TOPIC,
                "own.",
                PatternType.PREFIXED,
                "User:alice",
                "*",
                AclOperation.ALTER_CONFIGS,
                AclPermission.ALLOW,
            )
            client.run(Admin(client.cluster).acls.create([own]))
        asyncio.run(validate_and_change(broker.bootstrap))
    events = [json.loads(line) for line in path.read_text().splitlines()]
    of_alice = [each for each in events if each["principal"] == "User:alice" and each["action"] != "AUTHENTICATE"]
    assert [(each["action"], each["resource"], each["outcome"]) for each in of_alice] == [
        ("ALTER_CONFIGS", "other", "refused"),
        ("ALTER_CONFIGS", "own.1", "allowed"),
        ("CHANGE", "IncrementalAlterConfigs", "allowed"),
    ]


async def validate_and_change(bootstrap: str) -> None:
    options = ClientOptions(parse_bootstrap(bootstrap), security=security("alice"))
    (address,) = options.bootstrap
    connection = await Connection.open(
        address, client_id="t", connect_timeout_ms=10_000, request_timeout_ms=10_000, security=options.known_security
    )
    config = Resource.AlterableConfig(name="retention.ms", config_operation=0, value="1")
    try:
        names = ["other", *(f"own.{number}" for number in range(1_000))]
        some = [Resource(resource_type=2, resource_name=name, configs=[config]) for name in names]
        answer = await connection.request(IncrementalAlterConfigsRequest(resources=some, validate_only=True))
        errors = {each.resource_name: each.error_code for each in answer.responses}
        assert errors["other"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert errors["own.1"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await connection.request(IncrementalAlterConfigsRequest(resources=some[2:3], validate_only=False))
    finally:
        connection.close()
