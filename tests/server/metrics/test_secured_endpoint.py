"""The endpoint beyond loopback: the node's TLS, and the cluster's users with their rights."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.security.tokens import jwk, jwks, rsa_key, token
from tests.server.metrics.scraping import Got, Scrape
from tests.server.security.oauth_settings import AUDIENCE, ISSUER, LOGIN, UNSECURED, claims, signed
from tests.server.security.secured import Certificates, plain_jaas
from tests.server.talk import eventually
from tests.support.processes.key_provider import KeyProvider

from ottla import AclEntry, Admin, Blocking
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.security.acls import CLUSTER_NAME, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.sasl.scram.credentials import ScramMechanism
from ottla.testing.broker import EmbeddedBroker

LISTENER = "METRICS"
QUICK = {"connection.failed.authentication.delay.ms": "1"}


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates.make(tmp_path / "tls")


@contextmanager
def running(tmp_path: Path, certificates: Certificates, **more: str) -> Iterator[EmbeddedBroker]:
    """Its Kafka listener is plain, so that tests can make users. Underscores stand for dots."""
    tls = {f"listener.name.metrics.{name}": value for name, value in certificates.node().items()}
    others = {name.replace("_", "."): value for name, value in more.items()}
    settings = {"ottla.metrics.listener": "HTTPS://127.0.0.1:0"} | tls | QUICK | others
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        yield broker


def get(
    broker: EmbeddedBroker,
    context: ssl.SSLContext,
    path: str = "/metrics",
    user: str = "",
    password: str = "",
    authorization: str = "",
) -> Got:
    assert broker.node is not None
    assert broker.node.metrics_address is not None
    connection = http.client.HTTPSConnection(*broker.node.metrics_address, timeout=60, context=context)
    if user:
        authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    try:
        connection.request("GET", path, headers={"Authorization": authorization} if authorization else {})
        response = connection.getresponse()
        return Got(response.status, dict(response.getheaders()), response.read().decode())
    finally:
        connection.close()


def trusting(certificates: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates.trusted))


def counts(broker: EmbeddedBroker) -> dict[str, tuple[int, int]]:
    """Successes and failures of the endpoint by mechanism."""
    assert broker.node is not None
    found = broker.node.rooms.security.logins.counts
    return {key[1]: (each.successes, each.failures) for key, each in found.items() if key[0] == LISTENER}


async def allow_to_describe(broker: EmbeddedBroker, principal: str) -> None:
    """Allow it to describe the cluster."""
    cluster = AclResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL
    async with Admin(broker.bootstrap) as admin:
        await admin.acls.create([AclEntry(*cluster, principal, "*", AclOperation.DESCRIBE, AclPermission.ALLOW)])


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_users_of_the_cluster(tmp_path: Path, certificates: Certificates, mechanism: ScramMechanism) -> None:
    context = trusting(certificates)
    with running(tmp_path, certificates) as broker:
        with Blocking(broker.bootstrap) as client:
            client.admin.users.set_password("prometheus", "pa:ss-wört", mechanism=mechanism)
        refused = get(broker, context)
        assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, 'Basic realm="ottla", charset="UTF-8"')
        assert get(broker, context, user="prometheus", password="wrong").status == 401
        assert get(broker, context, user="nobody", password="pa:ss-wört").status == 401
        told = eventually(lambda: get(broker, context, user="prometheus", password="pa:ss-wört"))
        assert told.status == 200
        assert Scrape(told.body)("kafka_server_replicamanager_leadercount") == 0
        name = mechanism.sasl_name
        known = Scrape(told.body)("ottla_authentication_failures_total", listener=LISTENER, mechanism=name)
        assert known == counts(broker)[name][1] >= 1
        assert counts(broker)["NONE"] == (0, 1)
        assert counts(broker)[name][0] == 1


def test_bearer_tokens(tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    """They are checked as on a listener, with the provider's keys, and need the same right."""
    provider = KeyProvider(jwks(jwk(rsa_key(), kid="one", use="sig", alg="RS256")))
    prefix = "listener_name_metrics_sasl_oauthbearer"
    more = {
        f"{prefix}_jwks_endpoint_url": provider.url,
        f"{prefix}_expected_issuer": ISSUER,
        f"{prefix}_expected_audience": AUDIENCE,
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
    }
    context = trusting(certificates)
    with closing(provider), running(tmp_path, certificates, **more) as broker:

        def status(bearer: str, scheme: str = "Bearer") -> int:
            return get(broker, context, authorization=f"{scheme} {bearer}").status

        assert status(signed()) == 403
        asyncio.run(allow_to_describe(broker, "User:alice"))
        eventually(lambda: status(signed(), "bearer") == 200)
        assert status(signed(sub="bob")) == 403
        unsigned = token(claims(), {"alg": "none"}, signer=lambda _: b"")
        wrong = [
            signed(ahead_s=-7_200),
            signed(key=rsa_key(1)),
            signed(iss="https://other.test"),
            unsigned,
            "x.y.z",
            "",
        ]
        assert [status(each) for each in wrong] == [401] * len(wrong)
        assert counts(broker)["OAUTHBEARER"][1] == len(wrong)
        asked = get(broker, context).headers["WWW-Authenticate"]
        assert asked == 'Bearer realm="ottla"', "the last of two headers, behind that of Basic"
        provider.document = jwks(jwk(rsa_key(1), kid="two"))
        broker.clock.advance("10s")
        assert (status(signed("two", rsa_key(1))), status(signed())) == (200, 401), "the keys were rotated"
        assert not [each for each in (*filter(None, wrong), signed()) if each in caplog.text]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"listener_name_metrics_sasl_server_callback_handler_class": UNSECURED},
        {"listener_name_metrics_oauthbearer_sasl_jaas_config": f"{LOGIN};"},
    ],
)
def test_no_tokens_without_keys(tmp_path: Path, certificates: Certificates, settings: dict[str, str]) -> None:
    with running(tmp_path, certificates, **settings) as broker:
        for each in (signed(), token(claims(), {"alg": "none"}, signer=lambda _: b"")):
            refused = get(broker, trusting(certificates), authorization=f"Bearer {each}")
            assert refused.status == 401 and "Bearer" not in refused.headers["WWW-Authenticate"]


def test_settings_of_tokens_that_are_wrong_stop_the_start(tmp_path: Path, certificates: Certificates) -> None:
    more = {"listener_name_metrics_sasl_oauthbearer_jwks_endpoint_url": "gopher://keys"}
    with pytest.raises(ApiError, match="listener METRICS: OAUTHBEARER: "), running(tmp_path, certificates, **more):
        pass


def test_whether_it_is_ready_is_told_to_anybody_and_reasons_to_users(
    tmp_path: Path, certificates: Certificates
) -> None:
    context = trusting(certificates)
    jaas = plain_jaas("admin", {"admin": "admin-secret"})
    more = {"listener_name_metrics_plain_sasl_jaas_config": jaas}
    with running(tmp_path, certificates, **more) as broker:
        assert [get(broker, context, path).status for path in ("/healthz", "/readyz", "/readyz/reasons")] == [
            200,
            200,
            401,
        ]
        found = get(broker, context, "/readyz/reasons", "admin", "admin-secret")
        assert json.loads(found.body) == {"ready": True, "reasons": []}
        assert counts(broker)["PLAIN"] == (1, 0)


def test_a_certificate_names_the_client_and_its_rights_count(tmp_path: Path, certificates: Certificates) -> None:
    more = {
        "listener_name_metrics_ssl_client_auth": "requested",
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
    }
    with running(tmp_path, certificates, **more) as broker:
        named = certificates.context  # CN=admin
        assert get(broker, named).status == 403
        asyncio.run(allow_to_describe(broker, "User:CN=admin"))
        eventually(lambda: get(broker, named).status == 200)
        assert get(broker, trusting(certificates)).status == 401, "without a certificate it takes a password"
        assert counts(broker)["TLS"][0] >= 2


def test_a_certificate_that_is_required(tmp_path: Path, certificates: Certificates) -> None:
    with running(tmp_path, certificates, listener_name_metrics_ssl_client_auth="required") as broker:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            get(broker, trusting(certificates))
        assert get(broker, certificates.context).status == 200
        eventually(lambda: counts(broker)["TLS"][1] == 1)


def test_silent_and_plain_clients_make_room(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "METRICS_CONNECTIONS_MAX", 3)
    context = trusting(certificates)
    with running(tmp_path, certificates) as broker:
        assert broker.node is not None
        address = broker.node.metrics_address
        assert address is not None
        plain = [socket.create_connection(address) for _ in range(5)]
        for each in plain:
            each.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        silent = [context.wrap_socket(socket.create_connection(address), server_hostname="localhost") for _ in range(5)]
        assert get(broker, context, "/healthz").status == 200
        for sock in (*plain, *silent):
            sock.close()


@pytest.mark.parametrize("authorization", ["", "Basic cHJvbWV0aGV1czp3cm9uZw=="], ids=["nothing", "a wrong password"])
def test_many_that_are_refused_keep_out_neither_scrapers_nor_health_checks(
    tmp_path: Path, certificates: Certificates, authorization: str
) -> None:
    """While their refusals are delayed."""
    jaas = plain_jaas("admin", {"admin": "admin-secret"})
    more = {"listener_name_metrics_plain_sasl_jaas_config": jaas, "connection_failed_authentication_delay_ms": "5000"}
    context = trusting(certificates)
    field = f"Authorization: {authorization}\r\n" if authorization else ""
    with running(tmp_path, certificates, **more) as broker:
        assert broker.node is not None
        address = broker.node.metrics_address
        assert address is not None
        refused = []
        for _ in range(64):
            sock = context.wrap_socket(socket.create_connection(address), server_hostname="localhost")
            sock.sendall(f"GET /metrics HTTP/1.1\r\n{field}\r\n".encode())
            refused.append(sock)
        for path in ("/healthz", "/readyz"):
            assert get(broker, context, path).status == 200
        assert get(broker, context, user="admin", password="admin-secret").status == 200
        for sock in refused:
            sock.close()


def test_a_large_answer_to_a_slow_reader(tmp_path: Path, certificates: Certificates) -> None:
    """What the socket does not take waits, and is sent in order."""
    context = certificates.context
    more = {"listener_name_metrics_ssl_client_auth": "required"}
    with running(tmp_path, certificates, **more) as broker:
        assert broker.node is not None
        address = broker.node.metrics_address
        assert address is not None
        with Blocking(broker.bootstrap) as client:
            for number in range(150):
                client.admin.topics.create(f"a-topic-with-a-rather-long-name-{number:03}", 1, 1)
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        raw.connect(address)
        with context.wrap_socket(raw, server_hostname="localhost") as sock:
            sock.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            body = b""
            while piece := sock.recv(1_000):
                body += piece
        head, _, text = body.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(text)}\r\n".encode() in head
        assert Scrape(text.decode()).labels("kafka_log_log_size", "topic")


def test_no_other_listener_may_have_its_name(tmp_path: Path, certificates: Certificates) -> None:
    more = {"listeners": "METRICS://127.0.0.1:0", "listener_security_protocol_map": "METRICS:PLAINTEXT"}
    more["inter_broker_listener_name"] = "METRICS"
    with pytest.raises(ApiError, match="a listener is named METRICS"), running(tmp_path, certificates, **more):
        pass
