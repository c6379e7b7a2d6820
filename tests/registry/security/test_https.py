"""HTTPS: certificates of the server, also new ones; certificates and tokens of clients; instances that trust those."""

from __future__ import annotations

import asyncio
import base64
import errno
import itertools
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from tests.registry.security.web import Answer, ask
from tests.server.security.secured import Certificates
from tests.support.processes.key_provider import KeyProvider
from tests.support.processes.registry import record, until

from ottla.model.errors import ApiError
from ottla.registry.leader import ElectionOptions
from ottla.registry.security.settings import InvalidRegistrySettings, listener_of, registry_settings
from ottla.registry.service import Service, ServiceOptions
from ottla.registry.store import StoreOptions
from ottla.server.security.listener_tls import ListenerTls
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry

RULES = "RULE:^CN=([^,]*).*$/$1/,DEFAULT"
Make = Callable[..., Registry]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), {"group.min.session.timeout.ms": 100}) as broker:
        yield broker


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def make(broker: EmbeddedBroker, certificates: Certificates) -> Iterator[Make]:
    name = f"https-{next(_numbers)}"
    started: list[Registry] = []

    def start(**settings: str) -> Registry:
        own = {**certificates.node(f"{name}-{len(started)}"), "listeners": "https://127.0.0.1:0"}
        own |= {key.replace("_", "."): text for key, text in settings.items()}
        election = ElectionOptions(name, session_timeout_ms=1_500)
        started.append(Registry(broker.bootstrap, store=StoreOptions(name), election=election, settings=own))
        return started[-1].start()

    yield start
    for registry in started:
        registry.stop()


def register(url: str, certificates: Certificates, *headers: tuple[str, str], **more: Any) -> Answer:
    schema = more.pop("schema", record("R"))
    return ask(
        url, "POST", "/subjects/s/versions", *headers, body={"schema": schema}, trusted=certificates.trusted, **more
    )


def test_https_for_clients_and_among_instances(make: Make, certificates: Certificates) -> None:
    leader, follower = make(), make()
    assert leader.url.startswith("https://")
    assert register(leader.url, certificates).content["id"] == 1
    assert register(follower.url, certificates, schema=record("R", "f", "g")).content["id"] == 2
    client = SchemaRegistryClient({"url": follower.url, "ssl.ca.location": str(certificates.trusted)})
    assert client.get_subjects() == ["s"]
    client.close()
    with pytest.raises(ssl.SSLError):
        ask(leader.url, "GET", "/subjects")
    with pytest.raises(OSError, match=r"(?i)closed|reset|remote"):
        ask(leader.url.replace("https:", "http:"), "GET", "/subjects")


def test_a_new_certificate_is_used_without_a_restart_and_an_expired_one_warned_of(
    make: Make,
    certificates: Certificates,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = certificates.authority.node(common_name="old").write(tmp_path, "web")
    url = make(ssl_keystore_location=str(store)).url

    def common_name() -> str:
        context = ssl.create_default_context(cafile=certificates.trusted)
        port = int(url.rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
        ):
            found: Any = tls.getpeercert()
            return str(found["subject"][0][0][1])

    assert common_name() == "old"
    refresh = ListenerTls.refresh

    def fail_once(self: ListenerTls, *settings: Any) -> None:
        monkeypatch.setattr(ListenerTls, "refresh", refresh)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(ListenerTls, "refresh", fail_once)
    until(lambda: "it is tried again" in caplog.text)
    certificates.authority.node(common_name="new").write(tmp_path, "web")
    until(lambda: common_name() == "new")
    assert "has expired" not in caplog.text
    certificates.authority.server(expired=True).write(tmp_path, "web")
    until(lambda: "has expired at" in caplog.text)
    (line,) = [each for each in caplog.messages if "has expired at" in each]
    assert line.startswith("listener https: the certificate") and f"write a new one to {store}" in line


def test_an_expired_certificate_is_told_at_start(
    make: Make, certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = certificates.authority.server(expired=True).write(tmp_path, "web")
    make(ssl_keystore_location=str(store))
    assert [each.levelname for each in caplog.records if "has expired at" in each.getMessage()] == ["ERROR"]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("method", ["none", "bearer"])
def test_a_registry_that_is_open_to_other_machines_says_so(
    broker: EmbeddedBroker,
    certificates: Certificates,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    method: str,
    scheme: str,
) -> None:
    (tmp_path / "jwks.json").write_text('{"keys": []}')
    settings = {
        **certificates.node("open"),
        "authentication.method": method,
        "sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "jwks.json").as_uri(),
    }

    async def said(host: str) -> list[str]:
        caplog.clear()
        config = registry_settings(settings).config
        at = ServiceOptions(broker.bootstrap, host, 0, advertised_host="127.0.0.1", scheme=scheme, config=config)
        service = Service(at)
        await service.start()
        await service.stop()
        return [each.getMessage() for each in caplog.records if each.name == "ottla.registry.service"]

    lines = asyncio.run(said("0.0.0.0"))
    if method == "none":
        assert len(lines) == 1 and "may read and change all schemas: set authentication.method" in lines[0]
    elif scheme == "http":
        assert len(lines) == 1 and "does not encrypt: passwords and tokens can be read" in lines[0]
    else:
        assert lines == []
    assert asyncio.run(said("127.0.0.1")) == []


def test_a_certificate_says_who_the_client_is_and_instances_trust_each_other_by_it(
    make: Make, certificates: Certificates
) -> None:
    own = {
        "authentication_method": "ssl",
        "ssl_client_auth": "requested",
        "ssl_principal_mapping_rules": RULES,
        "inter_instance_principals": "User:instance",
    }
    store = certificates.authority.node(common_name="instance").write(certificates.directory, "instance")
    own["ssl_keystore_location"] = str(store)
    leader, follower = make(**own), make(**own)
    alice = certificates.authority.client("alice").write(certificates.directory, "alice")
    assert register(leader.url, certificates).code == 40101
    assert register(leader.url, certificates, certificate=alice).content["id"] == 1
    assert register(follower.url, certificates, certificate=alice, schema=record("R", "g")).content["id"] == 2
    # A client's certificate is not that of an instance.
    said = base64.urlsafe_b64encode(b'["User","admin",false,"x",1,"n"]').decode()
    told = ("X-Forward", "true"), ("X-Forward-Caller", said)
    assert register(leader.url, certificates, *told, certificate=alice).code == 40301
    other = Certificates.make(certificates.directory / "other")
    stranger = other.authority.client("alice").write(other.directory, "alice")
    with pytest.raises(OSError, match=r"(?i)unknown ca|reset|closed|broken|EOF"):
        register(leader.url, certificates, certificate=stranger)


def test_tokens_are_accepted_by_the_keys_of_a_file(make: Make, certificates: Certificates, tmp_path: Path) -> None:
    keys = {name: rsa.generate_private_key(65_537, 2_048) for name in ("old", "new")}
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [jwk("old", keys["old"])]}))
    url = make(
        **{
            "authentication_method": "bearer",
            "sasl.oauthbearer.jwks.endpoint.url": file.as_uri(),
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "200",
            "sasl.oauthbearer.expected.issuer": "https://issuer",
            "connection.failed.authentication.delay.ms": "1",
        }
    ).url

    def status(kid: str, key: rsa.RSAPrivateKey, **claims: object) -> int:
        bearer = ("Authorization", "Bearer " + token(kid, key, **claims))
        return ask(url, "GET", "/subjects", bearer, trusted=certificates.trusted).status

    assert status("old", keys["old"]) == 200
    assert status("old", keys["new"]) == 401  # the signature of another key
    assert status("old", keys["old"], exp=1) == 401
    assert status("old", keys["old"], iss="https://other") == 401
    assert status("new", keys["new"]) == 401
    unsigned = ".".join([part({"alg": "none"}), part({"sub": "a", "exp": time.time() + 60}), ""])
    refused = ask(url, "GET", "/subjects", ("Authorization", f"Bearer {unsigned}"), trusted=certificates.trusted)
    assert refused.code == 40101 and refused.headers["www-authenticate"] == 'Bearer realm="schema-registry"'
    file.write_text(json.dumps({"keys": [jwk("new", keys["new"])]}))
    until(lambda: status("new", keys["new"]) == 200)  # a key that is not known is looked for
    assert status("old", keys["old"]) == 401


def test_the_keys_of_a_provider_with_a_private_authority(make: Make, certificates: Certificates) -> None:
    """As for brokers, `ssl.truststore.*` says which provider is trusted."""
    key = rsa.generate_private_key(65_537, 2_048)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.node()["ssl.keystore.location"])
    provider = KeyProvider(json.dumps({"keys": [jwk("one", key)]}), context)
    bearer = ("Authorization", "Bearer " + token("one", key))
    try:
        settings = {"authentication_method": "bearer", "sasl.oauthbearer.jwks.endpoint.url": provider.url}
        url = make(**settings).url
        assert ask(url, "GET", "/subjects", bearer, trusted=certificates.trusted).status == 200
    finally:
        provider.close()


def part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def number(value: int) -> str:
    return base64.urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8)).decode().rstrip("=")


def jwk(kid: str, key: rsa.RSAPrivateKey) -> dict[str, str]:
    public = key.public_key().public_numbers()
    return {"kty": "RSA", "kid": kid, "n": number(public.n), "e": number(public.e)}


def token(kid: str, key: rsa.RSAPrivateKey, **claims: object) -> str:
    now_s = int(time.time())
    content = {"sub": "alice", "iss": "https://issuer", "iat": now_s, "exp": now_s + 600, **claims}
    signed = f"{part({'alg': 'RS256', 'kid': kid})}.{part(content)}"
    signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"ssl.keystore.location": ""}, "ssl.keystore.location is not set"),
        ({"authentication.method": "basic"}, "asks brokers by SASL"),
        ({"authentication.method": "bearer"}, "needs sasl.oauthbearer.jwks.endpoint.url"),
        ({"authentication.method": "none,basic"}, "none stands alone"),
        ({"authentication.method": "digest"}, "authentication.method"),
        ({"authentication.method": "ssl", "listeners": "http://127.0.0.1:0"}, "needs an https listener"),
        ({"inter.instance.secret": "short"}, "fewer than 16"),
        ({"inter.instance.secret": "env:NOT_THERE_AT_ALL"}, "NOT_THERE_AT_ALL"),
        ({"security.protocol": "SSL"}, "have the setting kafkastore.security.protocol"),
        ({"authentication.metod": "basic"}, "did you mean authentication.method"),
        ({"super.users": "admin"}, "super.users"),
    ],
)
def test_wrong_settings_are_refused(make: Make, settings: dict[str, str], why: str) -> None:
    base = {} if "super.users" not in settings else {"authentication.method": "ssl"}
    with pytest.raises((InvalidRegistrySettings, ApiError)) as refused:
        make(**base, **settings)
    assert why in str(refused.value)


WRONG = ["ftp://x:1", "http://x", "127.0.0.1:8081", "http://a:1,http://b:2", "http://a:1/p"]


@pytest.mark.parametrize("listeners", WRONG)
def test_a_wrong_listener_is_refused(listeners: str) -> None:
    with pytest.raises(InvalidRegistrySettings):
        listener_of(registry_settings({"listeners": listeners}).config)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_ends_with_the_authority_of_its_certificate(
    make: Make, certificates: Certificates, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    other = Certificates.make(tmp_path / "other")
    trusted = tmp_path / "trusted.pem"
    both = certificates.trusted.read_text() + other.trusted.read_text()
    trusted.write_text(both)
    url = make(
        authentication_method="ssl",
        ssl_client_auth="required",
        ssl_truststore_location=str(trusted),
        ssl_truststore_type="PEM",
    ).url
    context = ssl.create_default_context(cafile=certificates.trusted)
    context.maximum_version = version
    store = other.authority.client("alice").write(tmp_path, "alice")
    context.load_cert_chain(store)

    def got(session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLSession | None]:
        """The status line of the answer, and the session."""
        with (
            socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as tls,
        ):
            tls.sendall(b"GET /subjects HTTP/1.1\r\nHost: registry\r\nConnection: close\r\n\r\n")
            return tls.recv(12), tls.session

    status, session = got(None)
    assert status == b"HTTP/1.1 200" and session is not None
    trusted.write_text(certificates.trusted.read_text())

    def is_refused() -> bool:
        try:
            return got(session)[0] == b""
        except OSError:
            return True

    until(is_refused)
