"""Changes go to the leader and to nobody else: who is asked, what is sent, and what is believed of the answer."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.processes.registry import ask, record, until
from tests.support.waiting import WAIT_S

from ottla.model import limits
from ottla.registry.identity import RegistryIdentity, read_elected, read_identity
from ottla.registry.leader import ElectionOptions, ElectionResult
from ottla.registry.store import StoreOptions
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry

_numbers = itertools.count()
JSON = b"Content-Type: application/vnd.schemaregistry.v1+json\r\n"


class Stranger:
    """Something that listens, notes what it is sent, and answers as it likes."""

    def __init__(self, *answer: bytes, endless: bytes = b"", silent: bool = False) -> None:
        self.requests: list[bytes] = []
        self.sent_bytes = 0
        self._answer, self._endless, self._silent = answer, endless, silent
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.identity = RegistryIdentity("127.0.0.1", self._listening.getsockname()[1])
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._open.append(connection)
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.requests.append(connection.recv(65_536))
            for part in self._answer:
                connection.sendall(part)
            while self._endless:
                self.sent_bytes += connection.send(self._endless)
            if not self._silent:
                connection.close()

    def close(self) -> None:
        for each in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), {"group.min.session.timeout.ms": 100}) as broker:
        yield broker


Start = Callable[..., Registry]


@pytest.fixture
def start(broker: EmbeddedBroker) -> Iterator[Start]:
    name = f"forwarding-{next(_numbers)}"
    started: list[Registry] = []

    def start(peers: tuple[str, ...] = (), timeout_ms: int = 500) -> Registry:
        store = StoreOptions(name, timeout_ms=timeout_ms, peers=peers)
        registry = Registry(broker.bootstrap, store=store, election=ElectionOptions(name, 6_000)).start()
        started.append(registry)
        service: Any = registry.service
        until(lambda: service._running.store._writer is not None or service._running.election.verdict.number >= 2)
        return registry

    yield start
    for registry in started:
        registry.stop()


def follow(registry: Registry, leader: RegistryIdentity) -> None:
    """The group says that this one leads."""
    service: Any = registry.service
    election = service._running.election
    until(lambda: election.verdict.number >= 2)  # looked, and elected
    election.verdict = ElectionResult(99, leader, is_self=False)


def change(registry: Registry) -> Any:
    return ask(registry.url, "POST", "/subjects/s/versions", {"schema": record("R")})


def test_who_is_not_in_the_topic_is_sent_nothing(start: Start) -> None:
    """Anybody may join the group and be elected; what clients send is not for anybody."""
    stranger, registry = Stranger(), start()
    follow(registry, stranger.identity)
    answer = change(registry)
    assert (answer.status, answer.code) == (500, 50003)
    assert stranger.identity.url in answer.content["message"] and "not announced" in answer.content["message"]
    assert stranger.requests == []
    stranger.close()


def test_credentials_stay_here(start: Start) -> None:
    stranger = Stranger(b"HTTP/1.1 200 OK\r\n" + JSON + b'Content-Length: 8\r\n\r\n{"id":7}')
    registry = start((stranger.identity.url,))
    follow(registry, stranger.identity)
    to = urlsplit(registry.url)
    connection = http.client.HTTPConnection(to.hostname or "", to.port, timeout=WAIT_S)
    headers = {"Content-Type": "application/json", "Authorization": "Basic c2VjcmV0", "Cookie": "a=b", "X-Other": "c"}
    connection.request("POST", "/subjects/s/versions?normalize=true", json.dumps({"schema": record("R")}), headers)
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())) == (200, {"id": 7})
    connection.close()
    (sent,) = stranger.requests
    assert sent.startswith(b"POST /subjects/s/versions?normalize=true HTTP/1.1\r\n")
    assert b"x-forward: true" in sent.lower() and b"content-type: application/json" in sent.lower()
    for secret in (b"authorization", b"c2VjcmV0", b"cookie", b"x-other"):
        assert secret not in sent.lower()
    stranger.close()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"], "redirect"),
        ([b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"], "not JSON"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"], "not JSON"),
        ([b"220 mail.example.com ESMTP\r\n"], "and may have carried it out"),  # asked again meanwhile
        ([b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 200_000], "and may have carried it out"),
    ],
    ids=["redirect", "html", "nothing said", "mail", "long header"],
)
def test_what_is_no_answer_of_a_registry_is_not_passed_on(start: Start, answer: list[bytes], says: str) -> None:
    stranger = Stranger(*answer)
    registry = start((stranger.identity.url,))
    follow(registry, stranger.identity)
    refused = change(registry)
    assert (refused.status, refused.code) == (500, 50003)
    assert says in refused.content["message"] and stranger.requests
    stranger.close()


@pytest.mark.parametrize("framing", [b"Content-Length: 99999999999\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
def test_an_answer_without_end_is_cut_off(start: Start, framing: bytes) -> None:
    megabyte = b"x" * 1_000_000
    endless = b"%x\r\n%s\r\n" % (len(megabyte), megabyte) if b"chunked" in framing else megabyte
    stranger = Stranger(b"HTTP/1.1 200 OK\r\n" + JSON + framing, endless=endless)
    registry = start((stranger.identity.url,), 10_000)
    follow(registry, stranger.identity)
    refused = change(registry)
    assert (refused.status, refused.code) == (500, 50003) and "more than" in refused.content["message"]
    assert len(stranger.requests) == 1
    assert stranger.sent_bytes < limits.FORWARDED_ANSWER_BYTES_MAX + 64 * limits.MIB  # and what sockets hold
    stranger.close()


def test_who_says_nothing_is_not_waited_for_for_ever(start: Start) -> None:
    stranger = Stranger(silent=True)
    registry = start((stranger.identity.url,), 200)
    follow(registry, stranger.identity)
    refused = change(registry)
    assert (refused.status, refused.code) == (500, 50003)
    assert "did not answer in time, and may have carried it out" in refused.content["message"]
    deleted = ask(registry.url, "DELETE", "/subjects/s")
    assert deleted.code == 50003 and "may have carried it out" in deleted.content["message"]
    stranger.close()


def test_no_circles(start: Start) -> None:
    """What was forwarded once is not forwarded again, and nobody asks itself."""
    registry = start()
    service: Any = registry.service
    to = urlsplit(registry.url)
    follow(registry, service._running.election.identity)  # itself, and yet not
    assert change(registry).code == 50003
    connection = http.client.HTTPConnection(to.hostname or "", to.port, timeout=WAIT_S)
    connection.request("DELETE", "/subjects/s", headers={"X-Forward": "true"})
    answer = connection.getresponse()
    assert json.loads(answer.read())["error_code"] == 50004
    connection.close()


def test_a_leader_is_in_the_topic_before_it_is_asked(start: Start) -> None:
    leader = start(timeout_ms=10_000)
    follower = start(timeout_ms=10_000)
    assert change(follower).content["id"] == 1
    assert leader.service is not None and leader.service.is_leader


def test_a_registry_that_is_elected_meanwhile_does_it_itself(start: Start) -> None:
    """The leader it forwards to is gone, and before it gives up it is the leader."""
    stranger, registry = Stranger(), start(timeout_ms=10_000)
    service: Any = registry.service
    election = service._running.election
    own = election.identity
    follow(registry, stranger.identity)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(change(registry)))
    asking.start()
    until(lambda: service._running.store._writer is None)  # it forwards
    election.verdict = ElectionResult(100, own, is_self=True)
    asking.join()  # after twice the timeout without a leader it would be refused
    assert answers[0].content.get("id") == 1, answers
    assert stranger.requests == []
    stranger.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "a b"},
        {"host": "evil@inside"},
        {"host": "inside/path?"},
        {"host": ""},
        {"host": "h" * 300},
        {"host": 7},
        {"port": 70_000},
        {"port": -1},
        {"port": "80"},
        {"scheme": "file"},
        {"scheme": "gopher"},
    ],
    ids=str,
)
def test_what_can_be_no_address_counts_as_not_said(fields: dict[str, object]) -> None:
    good = {"version": 1, "host": "registry-1.example.com", "port": 8081, "master_eligibility": True, "scheme": "http"}
    assert read_identity(json.dumps(good).encode()) == RegistryIdentity("registry-1.example.com", 8081)
    for host in ("::1", "fe80::1%eth0", "10.0.0.1", "my_host"):
        assert read_identity(json.dumps({**good, "host": host}).encode()) is not None
    bad = {**good, **fields}
    assert read_identity(json.dumps(bad).encode()) is None
    elected = {"version": 1, "error": 0, "master": "m", "master_identity": bad}
    assert read_elected(json.dumps(elected).encode()).failed


@pytest.mark.parametrize("blob", [b"[" * 100_000, b"[" * 3_000, b'{"host":"' + b"x" * 10_000, b"[]", b"1", b"\xff"])
def test_what_can_be_no_identity(blob: bytes) -> None:
    assert read_identity(blob) is None and read_elected(blob).failed
