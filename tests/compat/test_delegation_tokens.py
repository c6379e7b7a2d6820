"""Delegation tokens on listeners with SASL: Kafka's own tool and client, and the same answers as a real Kafka."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.server.security.secured import MODULES, PASSWORDS, plain_jaas
from tests.support.java.programs import JavaServer
from tests.support.ports import free_ports
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.acls import described, filter_of
from tests.support.requests.holders import client_rights, create_acls, holders_of
from tests.support.requests.raw import Closed, RawConnection
from tests.support.requests.same import Both, Plain, Side
from tests.support.waiting import until

from ottla.model.settings.authorizer import STANDARD_AUTHORIZER
from ottla.server.api import dispatch
from ottla.server.api.needs import Needs
from ottla.wire.message import Request
from ottla.wire.messages.security.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.security.delete_acls import DeleteAclsRequest
from ottla.wire.messages.security.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
SASL = {
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    "delegation.token.secret.key": "a key that all nodes share",
    # Brokers and controllers are super users, and whatever no ACL is about is open to all.
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin;User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}


def kafka_on(directory: Path) -> RealKafka:
    ports = free_ports(2)
    own = f"SASL_PLAINTEXT://127.0.0.1:{ports[0]}"
    listeners = {"listeners": f"{own},CONTROLLER://127.0.0.1:{ports[1]}", "advertised.listeners": own}
    return RealKafka(directory, properties=SASL | listeners, ports=(ports[0], ports[1]))


def ottla_on(directory: Path) -> OttlaNode:
    twin = kafka_on(directory)
    path = directory / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in twin.properties.items()))
    return OttlaNode.on_file(path, twin.data_dir, twin.port)


@pytest.fixture(scope="module")
def nodes(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A real Kafka and its twin, by name, and where they listen."""
    kafka, ours = kafka_on(tmp_path_factory.mktemp("kafka")), ottla_on(tmp_path_factory.mktemp("ottla"))
    try:
        yield {"kafka": kafka.start().bootstrap, "ottla": ours.start().bootstrap}
    finally:
        kafka.stop()
        ours.stop()


# --- Kafka's tool and client


class Tool:
    """Kafka's tools, run as one user."""

    def __init__(self, java: JavaServer, bootstrap: str, path: Path, mechanism: str, login: str) -> None:
        self._java, self._bootstrap, self._path = java, bootstrap, path
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        path.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config={MODULES}.{module} required {login};\n"
        )

    def __call__(self, main: str, *words: str, fails: bool = False) -> str:
        args = ["--bootstrap-server", self._bootstrap, "--command-config", str(self._path), *words]
        answer = self._java.ask({"main": main, "args": args})
        assert (answer["code"] != 0) == fails, answer
        return str(answer["out"]) + str(answer.get("err", ""))

    def tokens(self, *words: str) -> list[list[str]]:
        """The rows of the table that the tool prints."""
        lines = self(TOKENS, *words).splitlines()
        return [
            line.split() for line in lines if line and not line.startswith(("TOKENID", "Calling", "Created", "Total"))
        ]


@pytest.mark.parametrize("kind", ["ottla", "kafka"])
def test_kafkas_tool_and_client(kind: str, nodes: dict[str, str], java_commands: JavaServer, tmp_path: Path) -> None:
    def user(name: str) -> Tool:
        login = f'username="{name}" password="{PASSWORDS[name]}"'
        return Tool(java_commands, nodes[kind], tmp_path / f"{name}.properties", "PLAIN", login)

    alice, admin = user("alice"), user("admin")
    life = ("--max-life-time-period", "-1")
    ((token_id, hmac, owner, requester, renewers, *_),) = alice.tokens(
        "--create", *life, "--renewer-principal", "User:admin"
    )
    assert (owner, requester, renewers) == ("User:alice", "User:alice", "[User:admin]")
    assert len(b64decode(hmac)) == 64

    def listed() -> list[list[str]]:
        """The id and the HMAC of each token, as the broker knows them; Kafka's needs a moment after each change."""
        return [row[:2] for row in alice.tokens("--describe", "--owner-principal", "User:alice")]

    until(listed, lambda found: found == [[token_id, hmac]])
    alice(TOPICS, "--create", "--topic", f"made-by-{kind}")

    login = f'username="{token_id}" password="{hmac}" tokenauth="true"'
    bearer = Tool(java_commands, nodes[kind], tmp_path / "token.properties", "SCRAM-SHA-256", login)
    assert f"made-by-{kind}" in bearer(TOPICS, "--list")
    assert "Delegation Token requests are not allowed" in bearer(TOKENS, "--create", *life, fails=True)

    assert "Completed renew" in admin(TOKENS, "--renew", "--renew-time-period", "60000", "--hmac", hmac)
    assert "Completed expire" in alice(TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    until(listed, lambda found: not found)
    assert "uthentication failed" in bearer(TOPICS, "--list", fails=True)


# --- the same answers


class LoggedIn(Side):
    """A side whose connection has logged in as a user."""

    def __init__(self, name: str, bootstrap: str, user: str, source: str | None = None) -> None:
        super().__init__(name, bootstrap, source=source)
        assert self.answer(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0  # type: ignore[attr-defined]
        message = f"\0{user}\0{PASSWORDS[user]}".encode()
        answer: Any = self.answer(SaslAuthenticateRequest(auth_bytes=message), 2)
        assert answer.error_code == 0


OF_A_TOKEN = ("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms", "token_id", "hmac")
OF_TOKENS = ("issue_timestamp", "expiry_timestamp", "max_timestamp", "token_id", "hmac")
_Create = CreateDelegationTokenRequest


def create(*renewers: tuple[str, str], life_ms: int = -1, **owner: str) -> _Create:
    wanted = [_Create.CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers]
    return _Create(renewers=wanted, max_lifetime_ms=life_ms, **owner)


def test_the_same_answers_as_kafka(nodes: dict[str, str]) -> None:
    by_user = {(kind, user): LoggedIn(kind, bootstrap, user) for kind, bootstrap in nodes.items() for user in PASSWORDS}
    both = Both(by_user["kafka", "alice"], by_user["ottla", "alice"], ())

    def script(alice: Side) -> Iterator[Plain]:
        admin = by_user[alice.name, "admin"]

        def refused(request: Request, version: int, by: Side = alice) -> Plain:
            """All of the answer, which is an error."""
            answer = by.call(request, version)
            assert answer["error_code"], answer
            return answer

        def lasting(side: Side, request: Request) -> Plain:
            """How long the token lasts from now, in minutes."""
            answer: Any = side.answer(request, 2)
            assert not answer.error_code, answer
            return round((answer.expiry_timestamp_ms - made.issue_timestamp_ms) / 60_000)

        for version in (1, 2, 3):
            yield alice.call(create(("User", "admin")), version, blank=OF_A_TOKEN)
            yield refused(create(("Group", "g")), version)
        yield alice.call(create(owner_principal_type="User", owner_principal_name="o"), 3, blank=OF_A_TOKEN)
        made: Any = alice.answer(create(("User", "admin"), life_ms=600_000), 3)
        yield (made.max_timestamp_ms - made.issue_timestamp_ms, made.expiry_timestamp_ms - made.issue_timestamp_ms)
        alice.settle()
        for version in (1, 2, 3):
            for owners in (None, [], [("User", "alice")], [("User", "o")], [("User", "admin"), ("Group", "alice")]):
                kind = DescribeDelegationTokenRequest.Owner
                wanted = owners and [kind(principal_type=type, principal_name=name) for type, name in owners]
                request = DescribeDelegationTokenRequest(owners=[] if owners == [] else wanted)
                yield alice.call(request, version, blank=OF_TOKENS)
        renew, expire = RenewDelegationTokenRequest, ExpireDelegationTokenRequest
        yield lasting(admin, renew(hmac=made.hmac, renew_period_ms=120_000))
        yield lasting(alice, renew(hmac=made.hmac, renew_period_ms=-1))
        yield lasting(alice, expire(hmac=made.hmac, expiry_time_period_ms=60_000))
        others: Any = alice.answer(create(owner_principal_type="User", owner_principal_name="o"), 3)
        alice.settle()
        for version in (1, 2):
            for hmac in (b"", b"nothing", others.hmac):
                yield refused(renew(hmac=hmac, renew_period_ms=1), version)
                yield refused(expire(hmac=hmac, expiry_time_period_ms=-1), version)
        # one that has expired and is not removed yet
        alice.answer(expire(hmac=made.hmac, expiry_time_period_ms=0), 2)
        alice.settle()
        yield refused(renew(hmac=made.hmac, renew_period_ms=1), 2)
        yield refused(expire(hmac=made.hmac, expiry_time_period_ms=5), 2)
        yield alice.call(expire(hmac=made.hmac, expiry_time_period_ms=-1), 2, blank=OF_A_TOKEN)
        alice.settle()
        yield refused(expire(hmac=made.hmac, expiry_time_period_ms=-1), 2)

    both.same(script)
    for side in by_user.values():
        side.close()


def test_rights_on_tokens_of_others(nodes: dict[str, str]) -> None:
    """Every set of the rights that the two APIs declare: each has an address of its own, which ACLs name."""
    dispatch.load_handlers()
    declared = [dispatch.ENDPOINTS[each.key].needs for each in (_Create, DescribeDelegationTokenRequest)]
    holders = [each for each in holders_of(Needs(asks=(*declared[0].asks, *declared[1].asks))) if not each.denied]
    hosts = {holder: f"127.1.9.{at}" for at, holder in enumerate(holders, 1)}
    entries = [entry for holder, host in hosts.items() for entry in holder.entries(host, "User:alice")]
    owner = DescribeDelegationTokenRequest.Owner(principal_type="User", principal_name="owner")
    of_owner = DescribeDelegationTokenRequest(owners=[owner])
    admins = {kind: LoggedIn(kind, bootstrap, "admin") for kind, bootstrap in nodes.items()}

    def script(admin: Side) -> Iterator[Plain]:
        create_acls(admin, entries)
        alices = {holder: LoggedIn(admin.name, admin.bootstrap, "alice", host) for holder, host in hosts.items()}
        for_owner = create(owner_principal_type="User", owner_principal_name="owner")
        admin.answer(for_owner, 3)
        until(lambda: admin.call(of_owner, 3)["tokens"])
        for holder, alice in alices.items():
            for version in (1, 2, 3):
                seen = alice.call(of_owner, version, blank=OF_TOKENS)
                yield f"v{version} with {holder}", seen
                assert len(seen["tokens"]) == bool(holder.rights & client_rights(declared[1])), holder
        for holder, alice in alices.items():
            made = alice.call(for_owner, 3, blank=OF_A_TOKEN)
            yield f"with {holder}", made
            assert (made["error_code"] == 0) == bool(holder.rights & client_rights(declared[0])), holder
            alice.close()

    try:
        Both(admins["kafka"], admins["ottla"], ()).same(script)
    finally:
        for admin in admins.values():
            admin.call(DeleteAclsRequest(filters=[filter_of(principal_filter="User:alice")]), 3)
            until(partial(admin.call, described(), 3), lambda found: not found["resources"])
            admin.close()


def test_nobody_else_is_served(nodes: dict[str, str]) -> None:
    """A connection that has not logged in is closed."""
    for bootstrap in nodes.values():
        with RawConnection(bootstrap) as connection, pytest.raises(Closed):
            connection.call(create(), 3)
