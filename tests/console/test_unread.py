"""Clients that ask for much and do not read it: what they hold is bounded, in bytes, places and time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.console.consoles import Visitor, running_console
from tests.console.pages.groups.people import token
from tests.console.signed_in import secured_options, signed_in
from tests.console.test_memory import console_process, resident
from tests.support.waiting import until

from ottla.console.options import ConsoleOptions
from ottla.console.security.sessions import Sessions
from ottla.console.service import ConsoleService
from ottla.model import limits
from ottla.sql import process
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker

EXPORT = "/sql/export?format=csv&query=" + quote("select repeat('x', 1000) a from range(100000)")
DOWNLOAD = "/topics/wide/records/download?as=json&start=oldest&count=200"
LARGE = 12_000_000
OK, BUSY = "200", "503"
PATIENCE_S = 15  # enough for two requests on a busy machine
LONG_S = 3_600
SOON_S = 60.0


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with SecureBroker(tmp_path_factory.mktemp("unread")) as broker:
        yield broker


@pytest.fixture
def console(secure: SecureBroker) -> Iterator[ConsoleService]:
    with running_console(secured_options(secure)) as console:
        yield console


def an_admin(secure: SecureBroker, console: ConsoleService) -> Visitor:
    return signed_in(console.url, "admin", secure.security_of("admin")["sasl.password"])


@contextmanager
def unread(visitor: Visitor, path: str) -> Iterator[tuple[socket.socket, str]]:
    """A request, and the status of its answer, of which no more is read."""
    host, port = visitor.host
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(60)
        sock.connect((host, port))
        cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {cookies}\r\n\r\n".encode())
        yield sock, sock.recv(12).decode()[9:]


def sessions_of(console: ConsoleService) -> Sessions:
    assert console._sessions is not None
    return console._sessions


def is_free(console: ConsoleService) -> bool:
    """Whether nothing is being answered."""
    sessions = sessions_of(console)
    return (sessions.requests.of_all, sessions.queries.of_all, sessions.unsent.of_all) == (0, 0, 0)


# --- queries ----------------------------------------------------------------------------------------------------------


def test_exports_that_nobody_reads_give_their_places_back(
    secure: SecureBroker, console: ConsoleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONSOLE_SEND_S", PATIENCE_S)
    first, second = an_admin(secure, console), an_admin(secure, console)
    with unread(first, EXPORT) as (sock, one), unread(second, EXPORT) as (_, two), unread(second, EXPORT) as (_, three):
        assert (one, two, three) == (OK, OK, BUSY), "both sessions are of one user"
        until(lambda: is_free(console) and not process.RUNNING, timeout_s=SOON_S)
        rest = b"".join(iter(lambda: sock.recv(1 << 20), b""))
        assert not rest.endswith(b"0\r\n\r\n"), "the connection was cut, and the file is incomplete"
        assert first.get("/sql/table?query=select+1").status == 200


def test_an_export_has_an_end_however_slowly_it_is_read(
    secure: SecureBroker, console: ConsoleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONSOLE_ANSWER_S", 4)
    monkeypatch.setattr(limits, "CONSOLE_SEND_S", LONG_S)
    with unread(an_admin(secure, console), EXPORT) as (sock, status):
        assert status == OK

        def read_slowly() -> None:
            try:
                while sock.recv(4096):
                    time.sleep(0.02)
            except OSError:
                pass

        reading = threading.Thread(target=read_slowly)
        reading.start()
        until(lambda: is_free(console) and not process.RUNNING, timeout_s=SOON_S)
        sock.shutdown(socket.SHUT_RDWR)
        reading.join()


def test_the_streams_of_a_session_end_with_it(
    secure: SecureBroker, console: ConsoleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONSOLE_SEND_S", LONG_S)
    leaver, other = an_admin(secure, console), an_admin(secure, console)
    with unread(leaver, EXPORT) as (_, gone), unread(other, EXPORT) as (_, kept):
        assert (gone, kept, len(process.RUNNING)) == (OK, OK, 2)
        assert leaver.post("/sign-out", {"_token": token(leaver, "/topics/+new")}).path == "/sign-in"
        until(lambda: sessions_of(console).queries.of("admin"), lambda left: left == 1, timeout_s=SOON_S)
        assert len(process.RUNNING) == 1, "the other session goes on"
    until(lambda: is_free(console) and not process.RUNNING, timeout_s=SOON_S)


def test_the_process_of_an_export_ends_in_time_though_nobody_reads(
    secure: SecureBroker, console: ConsoleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONSOLE_SEND_S", LONG_S)
    monkeypatch.setattr(limits, "SQL_EXPORT_S", 5)
    with unread(an_admin(secure, console), EXPORT) as (_, status):
        assert status == OK
        (pid,) = process.RUNNING
        until(lambda: not Path(f"/proc/{pid}").exists(), timeout_s=SOON_S)
        assert not is_free(console), "the answer is still being sent"
    until(lambda: is_free(console) and not process.RUNNING, timeout_s=SOON_S)


# --- files of records -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide(broker: EmbeddedBroker) -> EmbeddedBroker:
    """A broker with a topic of 40 MB, and one with a single large record."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    made = admin.create_topics([NewTopic("huge", 1, config={"max.message.bytes": str(2 * LARGE)}), NewTopic("wide", 1)])
    for each in made.values():
        each.result(60)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 2 * LARGE})
    for _ in range(50):
        producer.produce("wide", b"x" * 800_000, partition=0)
    producer.produce("huge", b"x" * LARGE, partition=0)
    assert producer.flush(60) == 0
    return broker


def test_downloads_that_nobody_reads_are_bounded_in_memory(wide: EmbeddedBroker) -> None:
    with console_process(wide.bootstrap) as (visitor, pid), ExitStack() as held:
        visitor.get("/topics/wide/records?count=2")
        before = resident(pid, "VmRSS")
        found = [held.enter_context(unread(visitor, DOWNLOAD))[1] for _ in range(40)]
        grown = resident(pid, "VmHWM") - before
        assert 1 <= found.count(OK) <= limits.CONSOLE_UNSENT_USER_BYTES_MAX // (30 << 20)
        assert found.count(OK) + found.count(BUSY) == len(found), found
        assert grown < limits.CONSOLE_UNSENT_BYTES_MAX, "40 of them are 1,300 MB"
        assert visitor.get("/topics").status == 200, "other pages are served"


@pytest.mark.parametrize("path", [DOWNLOAD, DOWNLOAD.replace("json", "csv"), "/topics/huge/records/0/0/value"])
def test_files_that_nobody_reads_give_their_places_back(
    wide: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(limits, "CONSOLE_SEND_S", PATIENCE_S)
    monkeypatch.setattr(limits, "CONSOLE_UNSENT_USER_BYTES_MAX", LARGE)
    with running_console(ConsoleOptions(wide.bootstrap, port=0)) as console:
        visitor = Visitor(console.url)
        sessions = sessions_of(console)
        with unread(visitor, path) as (_, first), unread(visitor, path) as (_, second):
            assert (first, second) == (OK, BUSY)
            assert sessions.requests.of_all and sessions.unsent.of_all >= LARGE
            until(lambda: is_free(console), timeout_s=SOON_S)
        assert len(visitor.load(path)) >= LARGE
        until(lambda: is_free(console), timeout_s=SOON_S)
