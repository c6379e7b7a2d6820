"""Registries over a cluster without a plaintext port: their connections, their users, ACLs on subjects, forwarding."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from tests.registry.security.web import AUTHORIZER, SECRET, USERS, Answer, ask, basic, secure_broker, store_settings
from tests.server.security.secured import Certificates
from tests.support.processes.registry import RegistryProcess, record, until

from ottla.client.admin import Admin
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.registry import RegistryError, RegistryOptions, SchemaRegistry
from ottla.model import limits
from ottla.registry.leader import ElectionOptions
from ottla.registry.security.caller import Caller
from ottla.registry.security.forward_seal import CALLER_HEADER, DIGEST_HEADER, SEAL_HEADER, ForwardSeal, SealedRequest
from ottla.registry.security.settings import registry_settings
from ottla.registry.service import Service, ServiceOptions
from ottla.registry.store import StoreOptions
from ottla.schemas.schema import SchemaSource
from ottla.security.acl_entry import AclEntry, AclFilter
from ottla.security.acls import CLUSTER_NAME, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.principal import Principal
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry
from ottla.web.bodies import BODY_S

ADMIN, ALICE, BOB = (basic(user) for user in ("admin", "alice", "bob"))
ASKS = {"authentication.method": "BASIC", "super.users": "User:admin", "connection.failed.authentication.delay.ms": "1"}
Make = Callable[..., Registry]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[EmbeddedBroker]:
    with secure_broker(tmp_path_factory.mktemp("broker"), certificates, **AUTHORIZER) as broker:
        yield broker


@pytest.fixture
def make(broker: EmbeddedBroker, certificates: Certificates) -> Iterator[Make]:
    """Start registries that share a topic of this test's own."""
    name = f"registry-{next(_numbers)}"
    started: list[Registry] = []

    def start(**settings: str) -> Registry:
        own = store_settings(certificates) | ASKS | {key.replace("_", "."): text for key, text in settings.items()}
        election = ElectionOptions(name, session_timeout_ms=1_500)
        registry = Registry(broker.bootstrap, store=StoreOptions(name), election=election, settings=own)
        started.append(registry)
        return registry.start()

    yield start
    for registry in started:
        registry.stop()


def register(url: str, subject: str, *headers: tuple[str, str], schema: str = record("R"), **more: Any) -> Answer:
    return ask(url, "POST", f"/subjects/{subject}/versions", *headers, body={"schema": schema, **more})


@pytest.fixture
def allow(broker: EmbeddedBroker, certificates: Certificates) -> Iterator[Callable[..., None]]:
    """Give users rights on topics (or on the cluster), which are taken away at the end."""
    security = {key.removeprefix("kafkastore."): text for key, text in store_settings(certificates).items()}
    options = ClientOptions(parse_bootstrap(broker.bootstrap), security=security)
    made: list[AclEntry] = []

    async def change(work: Callable[[Admin], Awaitable[object]]) -> None:
        async with Admin(options) as admin:
            await work(admin)

    def add(user: str, operation: AclOperation, topic: str | None) -> None:
        kind = AclResourceType.TOPIC if topic is not None else AclResourceType.CLUSTER
        name = topic or CLUSTER_NAME
        made.append(AclEntry(kind, name, PatternType.LITERAL, f"User:{user}", "*", operation, AclPermission.ALLOW))
        asyncio.run(change(lambda admin: admin.acls.create(made[-1:])))

    yield add
    asyncio.run(change(lambda admin: admin.acls.delete([AclFilter(*each) for each in made])))


def test_a_registry_and_its_follower_work_over_sasl_ssl(
    make: Make, broker: EmbeddedBroker, certificates: Certificates
) -> None:
    """Topic, transactions, election, reading: all without a plaintext port. The client's user passes with a change."""
    leader, follower = make(inter_instance_secret=SECRET), make(inter_instance_secret=SECRET)
    assert register(leader.url, "s-value", ADMIN).content["id"] == 1
    assert register(follower.url, "s-value", ADMIN, schema=record("R", "f", "g")).content["id"] == 2
    assert ask(follower.url, "GET", "/subjects/s-value/versions", ADMIN).content == [1, 2]
    assert not follower.service.is_leader  # type: ignore[union-attr]
    refused = register(follower.url, "s-value", ALICE, schema=record("R", "h"))
    assert (refused.status, refused.code) == (403, 40301)


def test_a_process_reads_its_settings_from_a_file(
    broker: EmbeddedBroker, certificates: Certificates, tmp_path: Path
) -> None:
    own = store_settings(certificates) | ASKS | certificates.node("web") | {"kafkastore.topic": "filed"}
    own |= {"schema.registry.group.id": "filed", "listeners": "https://127.0.0.1:1"}
    file = tmp_path / "registry.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in own.items()))
    process = RegistryProcess(tmp_path, broker.bootstrap, "--config", str(file))
    process.url = process.url.replace("http:", "https:")
    process.start()
    try:
        answer = ask(process.url, "GET", "/subjects", ADMIN, trusted=certificates.trusted)
        assert (answer.status, answer.content) == (200, [])
        assert ask(process.url, "GET", "/subjects", trusted=certificates.trusted).code == 40101
    finally:
        process.stop()
    assert USERS["admin"] not in process.errors()


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (basic("alice", "wrong"),),
        (basic("alice", ""),),
        (basic("nobody", "x"),),
        (basic("bob", "bob"),),
        (ADMIN, ADMIN),
        (ADMIN, basic("alice", "wrong")),
        (("Authorization", "Basic !!!"),),
        (("Authorization", "Basic"),),
        (("Authorization", "Bearer eyJhbGciOiJub25lIn0.e30."),),
        (("Authorization", "Basic YQ=="),),
        (("Authorization", "Basic /////w=="),),
    ],
)
def test_who_does_not_prove_who_they_are_is_refused(shared: str, headers: tuple[tuple[str, str], ...]) -> None:
    for path in ("/subjects", "/", "/schemas/ids/1", "/nowhere"):
        answer = ask(shared, "GET", path, *headers)
        assert (answer.status, answer.code) == (401, 40101), path
        assert answer.content["message"] == "User authentication failed"
        assert answer.headers["www-authenticate"] == 'Basic realm="schema-registry"'


@pytest.fixture(scope="module")
def shared(broker: EmbeddedBroker, certificates: Certificates) -> Iterator[str]:
    """The URL of a registry for tests that write nothing."""
    own = store_settings(certificates) | ASKS
    registry = Registry(
        broker.bootstrap, store=StoreOptions("shared"), election=ElectionOptions("shared"), settings=own
    )
    yield registry.start().url
    registry.stop()


def test_right_passwords_are_accepted_and_a_wrong_one_after_them_is_not(shared: str) -> None:
    for user in (ADMIN, BOB, ADMIN):
        assert ask(shared, "GET", "/subjects", user).content == []
        assert ask(shared, "GET", "/subjects", basic("admin", "wrong")).status == 401


def test_a_mechanism_that_brokers_do_not_offer_is_no_wrong_password(make: Make) -> None:
    url = make(authentication_sasl_mechanism="SCRAM-SHA-512").url
    assert ask(url, "GET", "/subjects", ADMIN).status == 500


def test_a_password_is_never_taken_for_the_name_of_a_variable_or_file(
    shared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `file:` or `env:` a client could use secrets of the registry's machine without knowing them."""
    file = tmp_path / "password"
    file.write_text(USERS["admin"])
    monkeypatch.setenv("ADMINS", USERS["admin"])
    for password in (f"file:{file}", "env:ADMINS"):
        assert ask(shared, "GET", "/subjects", basic("admin", password)).status == 401


def test_an_authorization_header_that_is_too_long_is_refused(shared: str) -> None:
    assert ask(shared, "GET", "/subjects", basic("admin", "x" * 20_000)).status == 431


@pytest.mark.parametrize(
    ("headers", "status"),
    [((), 401), ((basic("admin", "wrong"),), 401), ((("X-Forward", "true"),), 403)],
    ids=["nobody", "a wrong password", "an instance without a signature"],
)
def test_who_is_refused_is_refused_before_the_body_has_come(
    shared: str, headers: tuple[tuple[str, str], ...], status: int
) -> None:
    """Nothing of the body is sent, and the client waits for the answer less long than the registry for a body."""
    parts = urlsplit(shared)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=15)
    connection.putrequest("POST", "/subjects/s-value/versions")
    for name, value in (("Content-Length", str(limits.HTTP_BODY_BYTES_MAX)), *headers):
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()


def test_metrics_need_the_right_that_those_of_a_node_need(make: Make, allow: Callable[..., None]) -> None:
    url = make().url
    assert ask(url, "GET", "/metrics", ALICE).code == 40301
    allow("alice", AclOperation.DESCRIBE, None)
    until(lambda: _scrape_status(url, ALICE) == 200)
    assert (_scrape_status(url, BOB), _scrape_status(url, ADMIN)) == (403, 200)


def _scrape_status(url: str, login: tuple[str, str]) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.request("GET", "/metrics", headers=dict([login]))
        return connection.getresponse().status
    finally:
        connection.close()


def test_acls_of_topics_are_rights_on_subjects(make: Make, allow: Callable[..., None]) -> None:
    url = make().url
    for subject in ("orders-value", "orders-key", "people-value", "shop.Order"):
        assert (
            register(url, subject, ADMIN, schema=record("R", subject.replace("-", "_").replace(".", "_"))).status == 200
        )
    assert ask(url, "GET", "/subjects", ALICE).content == []
    assert ask(url, "GET", "/schemas/ids/1", ALICE).code == 40403
    allow("alice", AclOperation.READ, "orders")
    until(lambda: ask(url, "GET", "/subjects", ALICE).content == ["orders-key", "orders-value"])
    assert [each["subject"] for each in ask(url, "GET", "/schemas", ALICE).content] == ["orders-key", "orders-value"]
    assert ask(url, "GET", "/subjects/orders-value/versions/1", ALICE).status == 200
    assert ask(url, "GET", "/schemas/ids/1", ALICE).status == 200
    assert ask(url, "GET", "/schemas/ids/3", ALICE).code == 40403
    assert ask(url, "GET", "/config/orders-value?defaultToGlobal=true", ALICE).status == 200
    body = {"schema": record("R", "new")}
    for method, path, sent in [
        ("POST", "/subjects/orders-value/versions", body),
        ("DELETE", "/subjects/orders-value", None),
        ("DELETE", "/subjects/orders-value/versions/1", None),
        ("PUT", "/config/orders-value", {"compatibility": "NONE"}),
        ("PUT", "/mode/orders-value", {"mode": "READONLY"}),
        ("PUT", "/config", {"compatibility": "NONE"}),
        ("PUT", "/mode", {"mode": "READONLY"}),
        ("PUT", "/config/:.west:", {"compatibility": "NONE"}),
        ("DELETE", "/contexts/.west", None),
        ("GET", "/subjects/people-value/versions", None),
        ("GET", "/subjects/nothing-value/versions", None),
        ("POST", "/subjects/people-value", body),
        ("POST", "/compatibility/subjects/people-value/versions/latest", body),
        ("GET", "/config/people-value", None),
        # The same subject, written otherwise.
        ("GET", "/subjects/:.:people-value/versions", None),
        ("GET", "/subjects/%70eople-value/versions", None),
        ("GET", "/contexts/.west/subjects/people-value/versions", None),
        ("GET", "/subjects/people-value/versions/", None),
    ]:
        answer = ask(url, method, path, ALICE, body=sent)
        assert (answer.status, answer.code) == (403, 40301), (method, path, answer)
    for path in ("//subjects/people-value/versions", "/subjects/orders-value/../people-value/versions"):
        assert ask(url, "GET", path, ALICE).status == 404
    allow("alice", AclOperation.WRITE, "orders")
    allow("alice", AclOperation.ALTER_CONFIGS, "orders")
    until(lambda: register(url, "orders-value", ALICE, schema=record("R", "orders_value", "g")).status == 200)
    assert ask(url, "PUT", "/config/orders-value", ALICE, body={"compatibility": "NONE"}).status == 200
    assert ask(url, "DELETE", "/subjects/orders-value", ALICE).status == 403
    # All subjects share the ids: who owns one subject does not choose them.
    importing = ask(url, "PUT", "/mode/orders-value", ALICE, body={"mode": "IMPORT"})
    choosing = register(url, "orders-value", ALICE, schema=record("R", "h"), id=2**31 - 1, version=7)
    for refused in (importing, choosing):
        assert (refused.status, refused.code) == (403, 40301)
        assert "Alter on the cluster, which mode IMPORT and registering with an id need" in refused.content["message"]
    allow("alice", AclOperation.DELETE, "orders")
    allow("alice", AclOperation.ALTER, None)
    until(lambda: ask(url, "DELETE", "/subjects/orders-key", ALICE).status == 200)
    assert ask(url, "PUT", "/config", ALICE, body={"compatibility": "FULL"}).status == 200
    assert ask(url, "PUT", "/mode/orders-key", ALICE, body={"mode": "IMPORT"}).status == 200
    assert register(url, "orders-key", ALICE, schema=record("R", "h"), id=2**31 - 1, version=7).status == 200
    assert register(url, "people-value", ADMIN, schema=record("R", "people_value", "g")).content["id"] == 6


def test_a_reference_or_an_alias_is_no_way_around(make: Make, allow: Callable[..., None]) -> None:
    url = make().url
    assert register(url, "secret-value", ADMIN, schema=record("Secret")).status == 200
    for operation in (AclOperation.WRITE, AclOperation.ALTER_CONFIGS):
        allow("bob", operation, "mine")
    referring = {
        "schema": '{"type": "record", "name": "M", "fields": [{"name": "s", "type": "Secret"}]}',
        "references": [{"name": "Secret", "subject": "secret-value", "version": 1}],
    }
    until(lambda: register(url, "mine-value", BOB).status == 200)
    for path in (
        "/subjects/mine-value/versions",
        "/subjects/mine-value",
        "/compatibility/subjects/mine-value/versions",
    ):
        assert ask(url, "POST", path, BOB, body=referring).code == 40301
    assert ask(url, "PUT", "/config/mine-value", BOB, body={"alias": "secret-value"}).status == 200
    assert ask(url, "GET", "/subjects/mine-value/versions/1", BOB).code == 40301
    assert ask(url, "GET", "/schemas/ids/1?subject=secret-value", BOB).code == 40403
    guid = ask(url, "GET", "/schemas/ids/1?subject=secret-value", ADMIN).content["guid"]
    assert ask(url, "GET", f"/schemas/guids/{guid}", BOB).status == 404
    assert ask(url, "GET", f"/schemas/guids/{guid}", ADMIN).status == 200


def test_nobody_is_allowed_anything_without_acls(broker: EmbeddedBroker, certificates: Certificates) -> None:
    """The registry's own user must be allowed to describe the cluster; a super user needs no ACL."""
    read = registry_settings(store_settings(certificates, "alice") | ASKS)

    async def asked() -> tuple[Answer, Answer]:
        service = Service(ServiceOptions(broker.bootstrap, port=0, security=read.store, config=read.config))
        await service.start()  # `loaded` never comes: its topic cannot be read, either
        try:
            return (
                await asyncio.to_thread(ask, service.url, "GET", "/schemas/types", BOB),
                await asyncio.to_thread(ask, service.url, "GET", "/schemas/types", ADMIN),
            )
        finally:
            await service.stop()

    refused, allowed = asyncio.run(asked())
    assert (refused.status, refused.code) == (500, 50001) and "ACLs cannot be read" in refused.content["message"]
    assert allowed.status == 200


def test_without_a_secret_instances_do_not_trust_each_other(make: Make) -> None:
    leader, follower = make(), make()
    assert register(leader.url, "s", ADMIN).status == 200
    refused = register(follower.url, "s", ADMIN, schema=record("R", "g"))
    assert (refused.status, refused.code) == (500, 50003) and "inter.instance.secret" in refused.content["message"]
    for headers in [(ADMIN,), (), (("X-Forward-Caller", "x"),), (ADMIN, ("X-Forward-Caller", "x"))]:
        forwarded = register(leader.url, "s", ("X-Forward", "true"), *headers, schema=record("R", "g"))
        assert (forwarded.status, forwarded.code) == (403, 40301)


def test_with_a_secret_only_signed_requests_count_as_forwarded(make: Make) -> None:
    """Whoever reaches the leader may say that it forwards for admin, also beside a login of its own."""
    leader = make(inter_instance_secret=SECRET)
    assert register(leader.url, "s", ADMIN).status == 200
    told, body = ("X-Forward", "true"), record("R", "g")
    by_stranger = ForwardSeal("not the secret of the instances", lambda: time.time_ns() // 1_000_000)
    sent = SealedRequest.of(leader.url, "POST", "/subjects/s/versions", json.dumps({"schema": body}).encode())
    signed = by_stranger.headers(sent, Caller(Principal.user("admin"), "127.0.0.1"))
    caller = (CALLER_HEADER, signed[CALLER_HEADER])
    for headers in ((told,), (told, ADMIN), (told, caller), (told, caller, ADMIN), (told, *signed.items())):
        refused = register(leader.url, "s", *headers, schema=body)
        assert (refused.status, refused.code) == (403, 40301), headers
    by_instance = ForwardSeal(SECRET, lambda: time.time_ns() // 1_000_000)
    admin = Caller(Principal.user("admin"), "127.0.0.1")
    for changed in ({DIGEST_HEADER: ""}, {DIGEST_HEADER: "0" * 64}, {SEAL_HEADER: "made up"}):
        headers = by_instance.headers(sent, admin) | changed
        assert register(leader.url, "s", told, *headers.items(), schema=body).code == 40301, changed
    another = by_instance.headers(sent, admin)
    assert register(leader.url, "s", told, *another.items(), schema=record("R", "h")).code == 40301, "another body"
    accepted = by_instance.headers(sent, admin)
    assert register(leader.url, "s", told, *accepted.items(), schema=body).status == 200


def test_a_made_up_signature_is_refused_before_the_body_is_read(make: Make) -> None:
    """The head announces a body that never comes: who waited for it would answer after half a minute, with 408."""
    leader = make(inter_instance_secret=SECRET)
    by_stranger = ForwardSeal("not the secret of the instances", lambda: time.time_ns() // 1_000_000)
    sent = SealedRequest.of(leader.url, "POST", "/subjects/s/versions", b"")
    headers = by_stranger.headers(sent, Caller(Principal.user("admin"), "127.0.0.1")) | {
        "X-Forward": "true",
        "Host": "leader",
        "Content-Type": "application/json",
        "Content-Length": str(limits.HTTP_BODY_BYTES_MAX),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    address = urlsplit(leader.url)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=BODY_S / 2) as connection:
        connection.sendall(f"POST /subjects/s/versions HTTP/1.1\r\n{head}\r\n".encode())
        assert connection.recv(1_024).startswith(b"HTTP/1.1 403")


def test_clients_of_confluent_and_ours_authenticate(make: Make) -> None:
    url = make().url
    client = SchemaRegistryClient({"url": url, "basic.auth.user.info": f"admin:{USERS['admin']}"})
    schema_id = client.register_schema("c-value", Schema(record("R"), "AVRO"))
    ours = SchemaRegistry(RegistryOptions.of(url, {"basic.auth.user.info": f"admin:{USERS['admin']}"}))
    assert ours.by_id(schema_id).text == client.get_schema(schema_id).schema_str
    client.close()
    wrong_client = SchemaRegistryClient({"url": url, "basic.auth.user.info": "admin:wrong"})
    with pytest.raises(SchemaRegistryError) as wrong:
        wrong_client.get_subjects()
    wrong_client.close()
    assert (wrong.value.http_status_code, wrong.value.error_code) == (401, 40101)
    stranger = SchemaRegistry(RegistryOptions.of(url, {"basic.auth.user.info": f"alice:{USERS['alice']}"}))
    with pytest.raises(RegistryError, match="40301"):
        stranger.register("c-value", SchemaSource(record("R")))
