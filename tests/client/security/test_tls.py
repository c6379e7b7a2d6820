"""TLS below a connection: what is trusted, what is shown, and every failure in one line with its cause."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.client.scripted import CLOSE, ScriptedBroker, metadata
from tests.client.security.servers import Handshakes, server_context
from tests.support.certificates import Authority, Identity

from ottla.client.address import Address
from ottla.client.connection import Connection
from ottla.client.errors import AuthenticationError, ClientError, NotConnected, UnlikeListener
from ottla.client.security import context as contexts
from ottla.client.security.security import Security
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse

LOOPS = (asyncio.run, uvloop.run)
Run = Callable[[Coroutine[Any, Any, None]], None]
TOPICS = 6_000  # a Metadata answer of some hundred kilobytes


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def server(authority: Authority) -> Identity:
    return authority.server()


@pytest.fixture(params=LOOPS, ids=("asyncio", "uvloop"))
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.param
    return found


def tls(authority: Authority | None = None, **more: str) -> Security:
    trusted = {} if authority is None else {"ssl.truststore.certificates": authority.pem}
    return Security.of({"security.protocol": "SSL"} | trusted | {k.replace("_", "."): v for k, v in more.items()})


async def connect(broker: ScriptedBroker, security: Security | None, host: str = "localhost") -> Connection:
    return await Connection.open(Address(host, broker.port), security=security, connect_timeout_ms=20_000)


async def asked(broker: ScriptedBroker, security: Security | None) -> MetadataResponse:
    """Connect, send one request, close."""
    connection = await connect(broker, security)
    try:
        return await connection.request(MetadataRequest(topics=None))
    finally:
        connection.close()


def test_large_answers_over_tls(authority: Authority, server: Identity, run: Run) -> None:
    """Answers of many TLS records: received into their frame (RestOfFrame), and into reused memory (InPlace)."""

    async def test() -> None:
        async with ScriptedBroker(tls=server_context(server)) as broker:
            names = tuple(f"topic-{number}-{'x' * 100}" for number in range(TOPICS))
            broker.answers[MetadataRequest] = metadata(broker, topics=names)
            connection = await connect(broker, tls(authority))
            for in_place in (False, True):
                if in_place:
                    connection.read_in_place()
                for _ in range(3):
                    requests = [await connection.submit(MetadataRequest(topics=None)) for _ in range(4)]
                    for answer in await asyncio.gather(*requests):
                        assert [each.name for each in answer.topics] == list(names)
            connection.close()

    run(test())


def _files(authority: Authority, client: Identity, folder: Path) -> dict[str, dict[str, str]]:
    """The same trust and the same client certificate, in every form."""
    ca = authority.write(folder / "ca.pem")
    (folder / "ca.p12").write_bytes(authority.truststore("trust me"))
    (folder / "client.p12").write_bytes(client.pkcs12("hold me"))
    pem = client.write(folder, "client")
    locked = client.write(folder, "locked", password="open me")
    one_line = client.key_pem().replace("\n", " ")
    return {
        "PEM files": {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(ca),
            "ssl.keystore.location": str(pem),
        },
        "PKCS12": {
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(folder / "ca.p12"),
            "ssl.truststore.password": "trust me",
            "ssl.keystore.location": str(folder / "client.p12"),
            "ssl.keystore.password": "hold me",
        },
        "inline": {
            "ssl.truststore.certificates": authority.pem,
            "ssl.keystore.certificate.chain": client.chain_pem,
            "ssl.keystore.key": client.key_pem(),
        },
        "inline in one line": {
            "ssl.truststore.certificates": authority.pem.replace("\n", " "),
            "ssl.keystore.certificate.chain": client.chain_pem.replace("\n", " "),
            "ssl.keystore.key": one_line,
        },
        "encrypted": {
            "ssl.truststore.location": str(ca),
            "ssl.keystore.location": str(locked),
            "ssl.key.password": "open me",
        },
        "librdkafka": {
            "ssl.ca.location": str(ca),
            "ssl.certificate.location": str(folder / "client.crt"),
            "ssl.key.location": str(folder / "locked.key"),
            "ssl.key.password": "open me",
        },
    }


def test_every_form_of_stores(authority: Authority, server: Identity, tmp_path: Path) -> None:
    forms = _files(authority, authority.client("alice"), tmp_path)

    async def test() -> None:
        async with ScriptedBroker(tls=server_context(server, clients=authority)) as broker:
            broker.answers[MetadataRequest] = metadata(broker)
            for form in forms.values():
                answer = await asked(broker, Security.of({"security.protocol": "SSL"} | form))
                assert answer.cluster_id == "scripted"

    asyncio.run(test())


STORE_MISTAKES = {
    "no such file": (
        {"ssl.truststore.location": "{}/none.pem"},
        r"ssl.truststore.location: .*none.pem cannot be read: No",
    ),
    "wrong password": (
        {"ssl.truststore.location": "{}/ca.p12", "ssl.truststore.password": "wrong"},
        r"ssl.truststore.location: .*ca.p12 cannot be read: the password is wrong",
    ),
    "no password": ({"ssl.truststore.location": "{}/ca.p12"}, r"neither PEM nor PKCS #12, or it has a password"),
    "JKS": ({"ssl.truststore.location": "{}/old.jks"}, r"is a JKS keystore; convert it: keytool -importkeystore"),
    "locked key": ({"ssl.keystore.location": "{}/locked.pem"}, "the key is encrypted, and ssl.key.password is not set"),
    "wrong key password": (
        {"ssl.keystore.location": "{}/locked.pem", "ssl.key.password": "wrong"},
        "the key is encrypted, and ssl.key.password is wrong",
    ),
    "no key": ({"ssl.keystore.location": "{}/client.crt"}, "a private key and a certificate are needed"),
    "foreign key": (
        {"ssl.certificate.location": "{}/client.crt", "ssl.key.location": "{}/other.key"},
        "the key does not belong to the certificate",
    ),
    "two keys": (
        {"ssl.certificate.location": "{}/both.pem", "ssl.key.location": "{}/other.key"},
        "ssl.certificate.location holds a private key, and ssl.key.location gives one, too",
    ),
    "no certificate": ({"ssl.truststore.certificates": "nothing"}, "holds no certificate"),
    "cipher suites": ({"ssl.cipher.suites": "TLS_FOO_WITH_BAR"}, "ssl.cipher.suites: OpenSSL has none of"),
    "missing secret": (
        {"ssl.keystore.location": "{}/locked.pem", "ssl.key.password": "env:NOT_SET_HERE"},
        "ssl.key.password: the environment variable NOT_SET_HERE",
    ),
}


@pytest.mark.parametrize("mistake", STORE_MISTAKES)
def test_mistakes_in_stores(authority: Authority, tmp_path: Path, mistake: str) -> None:
    _files(authority, authority.client("alice"), tmp_path)
    authority.client("bob").write(tmp_path, "other")
    (tmp_path / "both.pem").write_text((tmp_path / "client.crt").read_text() + (tmp_path / "other.key").read_text())
    (tmp_path / "old.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    settings, said = STORE_MISTAKES[mistake]
    security = tls(**{name: value.format(tmp_path) for name, value in settings.items()})

    async def test() -> None:
        with pytest.raises(AuthenticationError, match=said) as raised:
            await Connection.open(Address("127.0.0.1", 1), security=security)
        assert "\n" not in str(raised.value)

    asyncio.run(test())


def test_failures_say_the_cause(authority: Authority, server: Identity, run: Run) -> None:
    stranger = Authority("Another CA")
    plain = server_context(server)
    mutual = server_context(server, clients=authority)
    cases: list[tuple[Any, Security, type[ClientError], str]] = [
        (plain, tls(stranger), AuthenticationError, "authority that is not in the truststore"),
        (plain, tls(), AuthenticationError, "authority that is not in the truststore|signed by itself"),
        (server_context(authority.server(expired=True)), tls(authority), AuthenticationError, "has expired"),
        (server_context(authority.server(["other.org"])), tls(authority), AuthenticationError, "this host name"),
        (server_context(authority.client("c")), tls(authority), AuthenticationError, "not for servers"),
        (mutual, tls(authority), UnlikeListener, "after the TLS handshake: does it want a certificate"),
    ]

    async def test() -> None:
        for context, security, kind, said in cases:
            async with ScriptedBroker(tls=context) as broker:
                with pytest.raises(kind, match=said) as raised:
                    await asked(broker, security)
                assert "\n" not in str(raised.value) and type(raised.value) is kind

    run(test())


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_what_a_server_says_of_the_clients_certificate(
    authority: Authority, server: Identity, run: Run, version: str
) -> None:
    """With TLS 1.3 the client has ended the handshake when it is told."""

    def client(identity: Identity) -> dict[str, str]:
        return {"ssl.keystore.certificate.chain": identity.chain_pem, "ssl.keystore.key": identity.key_pem()}

    cases = [
        ({}, "it wants a certificate of the client|or it wants a certificate"),
        (client(authority.client("late", expired=True)), "the client's certificate has expired"),
        (
            client(Authority("Another CA").client("foreign")),
            "it does not know the authority of the client's certificate",
        ),
    ]

    async def test(port: int) -> None:
        for settings, said in cases:
            security = tls(authority, **settings, ssl_enabled_protocols=version)
            with pytest.raises(AuthenticationError, match=said):
                await Connection.open(Address("localhost", port), security=security)

    with Handshakes(server_context(server, clients=authority)) as handshakes:
        run(test(handshakes.port))


def test_a_plaintext_listener_is_named(authority: Authority, run: Run) -> None:
    """A plaintext Kafka takes the first bytes of TLS for the length of a request, and hangs up."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.close()

    async def test() -> None:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(NotConnected, match="is it a plaintext listener"):
                await Connection.open(Address("127.0.0.1", port), security=tls(authority))

    run(test())


def test_the_host_is_checked_unless_that_is_turned_off(authority: Authority) -> None:
    async def test() -> None:
        for host in ("localhost", "127.0.0.1"):
            async with ScriptedBroker(tls=server_context(authority.server(["elsewhere.org", "10.1.2.3"]))) as broker:
                with pytest.raises(AuthenticationError, match=r"not for this (host name|address)"):
                    await connect(broker, tls(authority), host)
                unchecked = tls(authority, ssl_endpoint_identification_algorithm="")
                (await connect(broker, unchecked, host)).close()

    asyncio.run(test())


def test_versions_and_suites(authority: Authority, server: Identity) -> None:
    async def negotiated(broker: ScriptedBroker, **settings: str) -> tuple[str, str]:
        connection = await connect(broker, tls(authority, **settings))
        assert connection._transport is not None
        suite, version, _ = connection._transport.get_extra_info("cipher")
        connection.close()
        return version, suite

    async def test() -> None:
        async with ScriptedBroker(tls=server_context(server)) as broker:
            assert (await negotiated(broker))[0] == "TLSv1.3"
            assert (await negotiated(broker, ssl_enabled_protocols="TLSv1.2"))[0] == "TLSv1.2"
            suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
            chosen = await negotiated(broker, ssl_cipher_suites=suite)
            assert chosen == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")
            both = f"{suite},TLS_AES_256_GCM_SHA384"
            assert (await negotiated(broker, ssl_cipher_suites=both))[0] == "TLSv1.3"

    asyncio.run(test())


def test_a_context_is_made_once_and_again_when_a_file_changes(
    authority: Authority, server: Identity, tmp_path: Path
) -> None:
    path = Authority("Old CA").write(tmp_path / "ca.pem")
    security = tls(**{"ssl.truststore.location": str(path)})
    assert security.tls is not None
    assert contexts.context_of(security.tls) is contexts.context_of(security.tls)

    async def test() -> None:
        async with ScriptedBroker(tls=server_context(server)) as broker:
            with pytest.raises(AuthenticationError):
                await connect(broker, security)
            authority.write(path)
            os.utime(path, ns=(1, 1))
            (await connect(broker, security)).close()

    asyncio.run(test())


def test_a_plaintext_client_is_told_that_the_listener_speaks_tls_or_sasl(server: Identity, run: Run) -> None:
    async def test() -> None:
        async with ScriptedBroker(tls=server_context(server)) as broker:
            with pytest.raises(ClientError, match=r"set security.protocol|closed the connection"):
                await connect(broker, None)
        async with ScriptedBroker({ApiVersionsRequest: lambda _: b"\x15\x03\x03\x00\x02\x02\x50"}) as broker:
            with pytest.raises(ClientError, match=r"speaks TLS: set security.protocol=SSL or SASL_SSL"):
                await connect(broker, None)
        async with ScriptedBroker({MetadataRequest: lambda _: CLOSE}) as broker:
            with pytest.raises(ClientError, match=r"its listener may demand SASL: set security.protocol=SASL_"):
                await asked(broker, None)

    run(test())
