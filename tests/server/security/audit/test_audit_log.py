"""The audit log: what it has, where it is written, and that it is bounded."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Sequence
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from tests.server.security.secured import PASSWORDS, plain_jaas
from tests.support.waiting import WAIT_S, until, until_async

from ottla.client.admin import Admin
from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ClientError
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.audit_event import AuditKind
from ottla.security.principal import Principal
from ottla.server.security.audit.log import AuditLog
from ottla.server.security.audit.sinks import AuditFile
from ottla.server.security.audit.writer import AuditWriter, NotWritable
from ottla.testing.broker import EmbeddedBroker

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ALICE = Principal.user("alice")


def settings(**audit: str) -> dict[str, str]:
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
        "authorizer.class.name": STANDARD,
        "super.users": "User:admin",
        **{f"ottla.audit.{name}": value for name, value in audit.items()},
    }


def security(user: str, password: str | None = None) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password or PASSWORDS[user],
    }


def use(broker: EmbeddedBroker) -> None:
    """Somebody changes something, somebody is refused, and somebody does not know the password."""
    with Blocking(broker.bootstrap, security=security("admin")) as client:
        client.admin.topics.create("orders", partitions=1)
    with Blocking(broker.bootstrap, security=security("alice")) as client, pytest.raises(ApiError):
        client.admin.topics.create("mine", partitions=1)
    with (
        Blocking(broker.bootstrap, security=security("alice", "wrong")) as client,
        pytest.raises(ClientError, match="Invalid username or password"),
    ):
        client.admin.topics.names()


def check(events: list[dict[str, Any]]) -> None:
    found = {
        (each["principal"], each["action"], each["resource_type"], each["resource"], each["outcome"]) for each in events
    }
    assert found >= {
        ("User:admin", "AUTHENTICATE", "LISTENER", "SASL_PLAINTEXT", "allowed"),
        ("User:admin", "CREATE", "CLUSTER", "kafka-cluster", "allowed"),
        ("User:admin", "CHANGE", "API", "CreateTopics", "allowed"),
        ("User:alice", "CREATE", "TOPIC", "mine", "refused"),
        ("", "AUTHENTICATE", "LISTENER", "SASL_PLAINTEXT", "refused"),
    }
    assert not [each for each in events if each["outcome"] == "refused" and each["resource_type"] == "CLUSTER"], (
        "CREATE on the topic would have been enough"
    )
    assert all(each["host"] == "127.0.0.1" for each in events)
    assert not [each for each in events if each["action"] in ("READ", "DESCRIBE") and each["outcome"] == "allowed"]
    assert not [password for password in (*PASSWORDS.values(), "wrong") if password in json.dumps(events)]


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with EmbeddedBroker(tmp_path / "data", settings(to="file", file=str(path))) as broker:
        use(broker)
    check([json.loads(line) for line in path.read_text().splitlines()])
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_topic(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", settings(to="topic")) as broker:
        use(broker)
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanisms": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": PASSWORDS["admin"],
                "group.id": "auditors",
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        consumer.subscribe(["__ottla_audit"])
        events: list[dict[str, Any]] = []

        def refused() -> int:
            records = [each for each in consumer.consume(100, 0.5) if each.error() is None]
            events.extend(json.loads(each.value()) for each in records)
            return sum(each["outcome"] == "refused" for each in events)

        until(refused, lambda count: count >= 2)
        consumer.close()
    check(events)


def test_a_right_that_another_one_replaces_is_no_refusal(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with EmbeddedBroker(tmp_path / "data", settings(to="file", file=str(path), events="all")) as broker:
        with Blocking(broker.bootstrap, security=security("admin")) as client:
            client.admin.topics.create("orders", partitions=1)
            allowed = [
                AclEntry(
                    AclResourceType.TOPIC, topic, PatternType.LITERAL, "User:alice", "*", each, AclPermission.ALLOW
                )
                for topic, each in (("orders", AclOperation.WRITE), ("own", AclOperation.CREATE))
            ]
            client.run(Admin(client.cluster).acls.create(allowed))
        with Blocking(broker.bootstrap, security=security("alice")) as client:
            client.send_all("orders", [(None, b"x")])  # idempotently
            client.admin.topics.create("own", partitions=1)
            client.admin.groups.all()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    refused = [each for each in events if each["outcome"] == "refused"]
    assert refused == []
    named = {(each["resource"], each["principal"]): each["named"] for each in events if each["action"] == "CHANGE"}
    assert named == {
        ("CreateTopics", "User:admin"): "orders",
        ("CreateAcls", "User:admin"): (
            "ALLOW User:alice WRITE TOPIC LITERAL orders from *; ALLOW User:alice CREATE TOPIC LITERAL own from *"
        ),
        ("CreateTopics", "User:alice"): "own",
    }
    assert ("WRITE", "*", "allowed") in {(each["action"], each["resource"], each["outcome"]) for each in events}


def test_a_file_that_has_become_large_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AUDIT_FILE_BYTES_MAX", 100)
    path = tmp_path / "audit.log"
    with EmbeddedBroker(tmp_path / "data", settings(to="file", file=str(path))) as broker:
        for _ in range(limits.AUDIT_FILES_KEPT + 2):
            use_once(broker)
    kept = sorted(each.name for each in tmp_path.glob("audit.log*"))
    assert kept[0].startswith("audit.log")
    assert 2 <= len(kept) <= limits.AUDIT_FILES_KEPT + 1


def use_once(broker: EmbeddedBroker) -> None:
    with Blocking(broker.bootstrap, security=security("admin")) as client:
        client.admin.topics.names()
    assert broker.node is not None and broker._thread.loop is not None and broker.node.rooms.audit_writer is not None
    asyncio.run_coroutine_threadsafe(broker.node.rooms.audit_writer.flush(), broker._thread.loop).result(WAIT_S)


class Kept:
    name = "a test"

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.failure: Exception | None = None

    async def write(self, lines: Sequence[str]) -> None:
        if self.failure is not None:
            raise self.failure
        self.lines += lines

    async def count(self) -> int:
        return len(self.lines)

    async def close(self) -> None:
        pass


def test_events_that_come_too_fast_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AUDIT_EVENTS_MAX", 10)
    audit = AuditLog([AuditKind.ALL], lambda: 0)
    for number in range(25):
        audit.note_access(ALICE, "h", AclOperation.READ, AclResourceType.TOPIC, f"t{number}", True)
    lines = audit.take()
    assert len(lines) == 11
    assert "15 events are missing" in lines[-1]


def test_refusals_of_one_client_do_not_push_out_the_others() -> None:
    audit = AuditLog([AuditKind.REFUSED], lambda: 0)
    mallory = Principal.user("mallory")
    for number in range(100_000):
        audit.note_access(mallory, "h", AclOperation.DESCRIBE, AclResourceType.TOPIC, f"t{number}", False)
    audit.note_access(mallory, "h", AclOperation.READ, AclResourceType.GROUP, "g", False)
    audit.note_access(ALICE, "h", AclOperation.READ, AclResourceType.TOPIC, "t", False)
    events = [json.loads(line) for line in audit.take()]
    assert len(events) == limits.AUDIT_SHARE_EVENTS_MAX + 3
    more = 100_000 - limits.AUDIT_SHARE_EVENTS_MAX
    assert events[-1]["action"] == f"{more} more refusals by User:mallory on topics"
    assert ("User:alice", "t") in {(each["principal"], each["resource"]) for each in events}
    audit.note_access(mallory, "h", AclOperation.DESCRIBE, AclResourceType.TOPIC, "again", False)
    assert "again" in audit.take()[-1], "the next second begins anew"


def test_a_failing_sink_is_told_once_and_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    broken, good = Kept(), Kept()
    broken.failure = OSError("no room")
    audit = AuditLog([AuditKind.REFUSED], lambda: 0)
    writer = AuditWriter(audit, [broken, good])
    for _ in range(3):
        audit.note_access(ALICE, "h", AclOperation.READ, AclResourceType.TOPIC, "t", False)
        audit.note_access(ALICE, "h", AclOperation.CREATE, AclResourceType.TOPIC, "t", True)
        asyncio.run(writer.flush())
    assert len(good.lines) == 3
    assert caplog.text.count("cannot be written") == 1
    broken.failure = None
    audit.note_access(ALICE, "h", AclOperation.READ, AclResourceType.TOPIC, "t", False)
    asyncio.run(writer.flush())
    assert "3 events are missing" in broken.lines[0] and len(broken.lines) == 2


def refuse(audit: AuditLog, topic: str) -> None:
    audit.note_access(ALICE, "h", AclOperation.READ, AclResourceType.TOPIC, topic, False)


def test_the_first_lines_wait_for_a_sink_that_cannot_be_written_yet(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "AUDIT_EVENTS_MAX", 3)
    late, good = Kept(), Kept()
    late.failure = NotWritable("no broker yet")
    audit = AuditLog([AuditKind.REFUSED], lambda: 0)
    writer = AuditWriter(audit, [late, good])
    for number in range(5):
        refuse(audit, f"t{number}")
        asyncio.run(writer.flush())
    assert [each.message for each in caplog.records] == [
        "the audit log cannot be written to a test, so its first events wait: no broker yet",
        "the audit log cannot be written to a test, so events are lost: no broker yet",
    ]
    late.failure = None
    asyncio.run(writer.flush())  # without a new event
    assert [json.loads(line)["resource"] for line in late.lines] == ["t0", "t1", "t2", ""]
    assert "2 events are missing" in late.lines[-1]
    assert len(good.lines) == 5


class Hanging(Kept):
    """A sink that is being written to until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()

    async def write(self, lines: Sequence[str]) -> None:
        await self.free.wait()
        await super().write(lines)


def test_a_hanging_sink_holds_up_no_other(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(limits, "AUDIT_EVENTS_MAX", 3)
    monkeypatch.setattr(limits, "AUDIT_CLOSE_S", 0)

    async def write() -> tuple[list[str], list[str]]:
        good, hanging, later = Kept(), Hanging(), Hanging()
        audit = AuditLog([AuditKind.REFUSED], lambda: 0)
        writer = AuditWriter(audit, [good, hanging, later])
        for number in range(7):
            refuse(audit, f"t{number}")
            writer.begin()
            await until_async(good.count, partial(eq, number + 1))
        assert not hanging.lines
        hanging.free.set()
        await until_async(hanging.count, partial(eq, 5))
        await writer.close()
        return [json.loads(line)["resource"] for line in good.lines], hanging.lines

    written, hung = asyncio.run(write())
    assert written == [f"t{number}" for number in range(7)]
    assert [json.loads(line)["resource"] for line in hung] == ["t0", "t1", "t2", "t3", ""]
    assert "3 events are missing" in hung[-1], "as many wait as may, beside the one that is being written"
    assert "7 events of the audit log were not written to a test before the node stopped" in caplog.text


def test_a_stop_says_what_was_not_written(caplog: pytest.LogCaptureFixture) -> None:
    late = Kept()
    late.failure = NotWritable("no broker yet")
    audit = AuditLog([AuditKind.REFUSED], lambda: 0)
    refuse(audit, "t")
    asyncio.run(AuditWriter(audit, [late]).close())
    assert "1 events of the audit log were not written to a test before the node stopped" in caplog.text


def test_a_file_has_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"ottla\.audit\.file must name the file"):
        EmbeddedBroker(tmp_path / "data", settings(to="file")).start()


def test_a_decision_is_noted_once_and_lists_are_not_noted(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with EmbeddedBroker(tmp_path / "data", settings(to="file", file=str(path))) as broker:
        with Blocking(broker.bootstrap, security=security("admin")) as client:
            for number in range(5):
                client.admin.topics.create(f"t{number}", partitions=1)
        with Blocking(broker.bootstrap, security=security("alice")) as client:
            for _ in range(5):
                assert client.admin.topics.names() == []
                with pytest.raises(ApiError):
                    client.admin.topics.create("mine", partitions=1)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    of_alice = [(each["action"], each["resource"]) for each in events if each["principal"] == "User:alice"]
    assert of_alice.count(("CREATE", "mine")) == 1
    assert not [each for each in of_alice if each[0] == "DESCRIBE"]


def test_a_torn_line_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = AuditFile(str(tmp_path / "audit.log"), None)  # type: ignore[arg-type]
    write, full = os.write, iter([True, False])

    def failing(descriptor: int, data: memoryview) -> int:
        if next(full, False):
            return write(descriptor, data[:5])
        if not data[5:]:
            return write(descriptor, data)
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "write", failing)
    with pytest.raises(OSError, match="no space"):
        sink._append(['{"first": 1}'])
    monkeypatch.setattr(os, "write", write)
    sink._append(['{"second": 2}'])
    torn, whole = (tmp_path / "audit.log").read_text().splitlines()
    assert (torn, json.loads(whole)) == ('{"fir', {"second": 2})
