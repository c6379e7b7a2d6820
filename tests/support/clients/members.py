"""Group members and transactional producers of every client with one interface: a test is written once and runs with
all.

A member polls by itself until it leaves; a test looks at its state. Clients in other processes are here (Java,
franz-go, kafkajs), Python clients in python_members.
"""

import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol

from tests.support.clients.security import OPEN, ClientSecurity
from tests.support.lines import HarnessError, LineServer
from tests.support.waiting import WAIT_S


class Received(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: str


class State(NamedTuple):
    """The assignment of a member and the records it has received; `failed` names the error that ended it."""

    assignment: list[tuple[str, int]]
    records: list[Received]
    assigned: int
    revoked: int
    lost: int
    failed: str | None


class Joining(NamedTuple):
    """How to join: the protocol is the name of an assignor (classic), or "consumer" (KIP-848)."""

    group: str
    topics: Sequence[str]
    protocol: str
    instance: str | None = None
    isolation: str = "read_uncommitted"
    pattern: str | None = None


class Member(Protocol):
    def state(self) -> State: ...
    def commit(self) -> None:
        """Commit the offsets of the received records."""

    def leave(self) -> None:
        """Close the consumer; a static member keeps its assignment."""


class Transactional(Protocol):
    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, values: Sequence[str]) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class GroupClient(Protocol):
    name: str
    version: str
    protocols: tuple[str, ...]
    fenced: type[Exception]  # the exception of a producer that was fenced by another one

    def join(self, bootstrap: str, how: Joining) -> Member: ...
    def transactional(self, bootstrap: str, identity: str) -> Transactional: ...
    def copy(self, bootstrap: str, how: Joining, target: str, identity: str, total: int) -> None:
        """Copy `total` records to `target` as "copy of …", with offsets and records in the same transactions."""


def until(condition: Callable[[], Any], what: Callable[[], object], timeout_s: float = WAIT_S) -> Any:
    """Wait until the condition holds and return its value; the error says what was seen last."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"after {timeout_s} s: {what()}"
        time.sleep(0.03)
    return value


def shared_out(members: Sequence[Member], partitions: int) -> bool:
    """Whether the members own all partitions, each once, and no member is idle without need."""
    states = [member.state() for member in members]
    assert not any(state.failed for state in states), states
    held = [place for state in states for place in state.assignment]
    busy = sum(bool(state.assignment) for state in states)
    return len(held) == len(set(held)) == partitions and busy == min(len(members), partitions)


class LineMember:
    def __init__(self, server: LineServer, name: str) -> None:
        self._server = server
        self._name = name
        self._records: list[Received] = []

    def state(self) -> State:
        answer = self._server.ask({"verb": "state", "member": self._name, "from": len(self._records)})
        self._records += [Received(*each) for each in answer["records"]]
        held = sorted((topic, partition) for topic, partition in answer["assignment"])
        counts = (answer["assigned"], answer["revoked"], answer["lost"])
        return State(held, list(self._records), *counts, answer["failed"])

    def commit(self) -> None:
        self._server.ask({"verb": "commit", "member": self._name})

    def leave(self) -> None:
        self._server.ask({"verb": "leave", "member": self._name})


class LineTransactional:
    def __init__(self, server: LineServer, name: str) -> None:
        self._server = server
        self.name = name

    def begin(self) -> None:
        self._ask("txn_begin")

    def send(self, topic: str, partition: int, values: Sequence[str]) -> None:
        self._ask("txn_send", topic=topic, partition=partition, values=list(values))

    def commit(self) -> None:
        self._ask("txn_commit")

    def abort(self) -> None:
        self._ask("txn_abort")

    def close(self) -> None:
        self._ask("txn_close")

    def _ask(self, verb: str, **arguments: Any) -> None:
        self._server.ask({"verb": verb, "producer": self.name, **arguments})


_NUMBERS = count(1)  # a harness serves several clients, whose members need different names


class LineClient:
    """franz-go or kafkajs: their harnesses take the fields of Joining unchanged."""

    fenced: type[Exception] = HarnessError

    def __init__(
        self,
        server: LineServer,
        name: str,
        version: str,
        protocols: tuple[str, ...],
        security: ClientSecurity = OPEN,
    ) -> None:
        self.name = name
        self.version = version
        self.protocols = protocols
        self._server = server
        self._security = security

    def join(self, bootstrap: str, how: Joining) -> LineMember:
        name = f"member-{next(_NUMBERS)}"
        self._server.ask({"verb": "join", "bootstrap": bootstrap, "member": name, **self._joining(how)})
        return LineMember(self._server, name)

    def transactional(self, bootstrap: str, identity: str) -> LineTransactional:
        name = f"producer-{next(_NUMBERS)}"
        request = {"verb": "txn_open", "bootstrap": bootstrap, "producer": name, "id": identity}
        self._server.ask(request | self._secured())
        return LineTransactional(self._server, name)

    def ask(self, verb: str, bootstrap: str, **fields: object) -> Any:
        """The answer to any other verb of the harness."""
        return self._server.ask({"verb": verb, "bootstrap": bootstrap, **fields} | self._secured())

    def copy(self, bootstrap: str, how: Joining, target: str, identity: str, total: int) -> None:
        request = {"verb": "copy", "bootstrap": bootstrap, "target": target, "id": identity, "count": total}
        self._server.ask(request | self._joining(how))

    def _joining(self, how: Joining) -> dict[str, Any]:
        fields = {name: value for name, value in how._asdict().items() if value is not None}
        return fields | {"topics": list(how.topics)} | self._secured()

    def _secured(self) -> dict[str, Any]:
        return {"security": self._security.texts()} if self._security != OPEN else {}


class JavaGroups(LineClient):
    """The Java consumer and producer; its harness takes the clients' own settings."""

    def __init__(self, server: LineServer, version: str, security: ClientSecurity = OPEN) -> None:
        assignors: tuple[str, ...] = ("range", "roundrobin", "cooperative-sticky")
        protocols = assignors if version.startswith("3.") else (*assignors, "consumer")
        super().__init__(server, "java", version, protocols, security)

    def copy(self, bootstrap: str, how: Joining, target: str, identity: str, total: int) -> None:
        member = self.join(bootstrap, how._replace(isolation="read_committed"))
        producer = self.transactional(bootstrap, identity)
        until(lambda: len(member.state().records) >= total, lambda: len(member.state().records))
        records = member.state().records
        for part in (records[: total // 3], records[total // 3 :]):
            producer.begin()
            producer.send(target, 0, [f"copy of {each.value}" for each in part])
            offsets = [[each.topic, each.partition, each.offset + 1] for each in part]
            self._server.ask({
                "verb": "txn_offsets", "producer": producer.name, "member": member._name, "offsets": offsets,
            })  # fmt: skip
            producer.commit()
        producer.close()
        member.leave()

    def _joining(self, how: Joining) -> dict[str, Any]:
        config = {"group.id": how.group, "isolation.level": how.isolation} | self._secured()["config"]
        if how.protocol == "consumer":
            config["group.protocol"] = "consumer"
        else:
            config["partition.assignment.strategy"] = ASSIGNORS[how.protocol]
            config |= {"heartbeat.interval.ms": "300", "session.timeout.ms": "10000"}
        if how.instance is not None:
            config["group.instance.id"] = how.instance
        return {"topics": list(how.topics), "pattern": how.pattern, "config": config}

    def _secured(self) -> dict[str, Any]:
        return {"config": self._security.java()}


ASSIGNORS = {
    name: f"org.apache.kafka.clients.consumer.{kind}Assignor"
    for name, kind in (("range", "Range"), ("roundrobin", "RoundRobin"), ("cooperative-sticky", "CooperativeSticky"))
}
