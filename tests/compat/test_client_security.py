"""Our client against a real Kafka with TLS, client certificates and each SASL mechanism."""

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes.secure_kafka import MECHANISMS, PASSWORD, SecureKafka
from tests.support.waiting import WAIT_S
from typer.testing import CliRunner

from ottla import (
    Admin,
    AuthenticationError,
    Blocking,
    ClientError,
    Consumer,
    ConsumerOptions,
    Producer,
    ProducerOptions,
    RangeReader,
    ShareConsumer,
    ShareOptions,
    Span,
)
from ottla.cli.app import app
from ottla.client.connection import Connection
from ottla.client.options import parse_address
from ottla.client.security.conversation import SaslSession
from ottla.client.security.security import Security
from ottla.model.resources import Resource, ResourceType
from ottla.wire.messages.security.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.security.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

RECORDS = 500
SIZE_BYTES = 10_000


@pytest.fixture(scope="module")
def kafka(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    secure = SecureKafka(tmp_path_factory.mktemp("secure"))
    try:
        secure.start()
        asyncio.run(secure.add_scram_user())
        yield secure
    finally:
        secure.stop()


def mutual(kafka: SecureKafka, name: str = "alice", **kind: Any) -> dict[str, str]:
    identity = kafka.authority.client(name, **kind)
    return kafka.security("MUTUAL") | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": identity.chain_pem,
        "ssl.keystore.key": identity.key_pem("of the key"),
        "ssl.key.password": "of the key",
    }


WAYS = {
    **{f"{mechanism} without TLS": ("SASL", mechanism) for mechanism in MECHANISMS},
    **{f"{mechanism} over TLS": ("SECURE", mechanism) for mechanism in MECHANISMS},
    "TLS": ("ENCRYPTED", None),
    "mutual TLS": ("MUTUAL", None),
}


async def _everything(bootstrap: str, security: dict[str, str], topic: str) -> None:
    """Every client does its work: megabytes are fetched, groups are joined, a transaction is committed."""
    async with Admin(bootstrap, security=security) as admin:
        await admin.topics.create(topic, partitions=1)
        resource = Resource(ResourceType.GROUP, f"{topic}-share")
        await admin.configs.set(resource, {"share.auto.offset.reset": "earliest"})
    options = ProducerOptions(transactional_id=topic)
    async with Producer(bootstrap, options, security=security) as producer, producer.transaction():
        for number in range(RECORDS):
            await producer.send(topic, b"%06d" % number + bytes(SIZE_BYTES))
    wanted = list(range(RECORDS))
    group = ConsumerOptions(group_id=topic, auto_offset_reset="earliest", isolation_level="read_committed")
    async with Consumer(bootstrap, group, security=security) as consumer:
        consumer.subscribe([topic])
        read = [int(record.value[:6]) async for record in _first(consumer, RECORDS)]
        assert read == wanted
    async with RangeReader(bootstrap, [Span(topic, 0)], security=security) as reader:
        assert [int((record.value or b"")[:6]) async for record in reader] == wanted
    async with ShareConsumer(bootstrap, ShareOptions(group_id=f"{topic}-share"), security=security) as sharer:
        sharer.subscribe([topic])
        assert [int(record.value[:6]) async for record in _first(sharer, 10)] == wanted[:10]


async def _first(source: Any, count: int) -> Any:
    found = 0
    async for record in source:
        yield record
        found += 1
        if found == count:
            return


@pytest.mark.parametrize("way", WAYS)
def test_every_client_works(kafka: SecureKafka, way: str, new_name: Callable[[str], str]) -> None:
    listener, mechanism = WAYS[way]
    security = mutual(kafka) if listener == "MUTUAL" else kafka.security(listener, mechanism)

    async def run() -> None:
        async with asyncio.timeout(2 * WAIT_S):
            await _everything(kafka.at(listener), security, new_name("secure"))

    asyncio.run(run())


def test_the_blocking_client_works(kafka: SecureKafka, new_name: Callable[[str], str]) -> None:
    topic = new_name("blocking")
    with Blocking(kafka.at("SECURE"), security=kafka.security("SECURE", "SCRAM-SHA-512")) as client:
        client.admin.topics.create(topic)
        client.send(topic, b"value")
        client.flush()
        consumer = client.consumer(ConsumerOptions(group_id=topic, auto_offset_reset="earliest"))
        consumer.subscribe([topic])
        assert next(iter(consumer)).value == b"value"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused(kafka: SecureKafka, mechanism: str) -> None:
    async def run() -> None:
        wrong = kafka.security("SECURE", mechanism, "guessed")
        async with asyncio.timeout(WAIT_S), Admin(kafka.at("SECURE"), security=wrong) as admin:
            with pytest.raises(AuthenticationError, match=r"(?i)invalid (username or password|credentials)") as raised:
                await admin.topics.names()
            assert "guessed" not in str(raised.value)

    asyncio.run(run())


def test_failures_name_their_cause(kafka: SecureKafka) -> None:
    """What a real Kafka does with clients that do not fit its listeners."""
    trusted = kafka.security("ENCRYPTED")
    scram = kafka.security("SASL", "SCRAM-SHA-256")
    stranger = kafka.security("SASL", "PLAIN") | {"sasl.username": "bob"}
    cases: list[tuple[str, dict[str, str], str]] = [
        ("OUTDATED", trusted, "its certificate has expired"),
        ("ENCRYPTED", {"security.protocol": "SSL"}, "not in the truststore"),
        ("MUTUAL", trusted, "client's certificate, or wants one"),
        ("MUTUAL", mutual(kafka, expired=True), "client's certificate"),
        ("SASL", trusted, "is it a plaintext listener"),
        ("SASL", stranger, "refused PLAIN user bob"),
        ("SASL", {}, r"its listener may demand SASL: set security.protocol=SASL_"),
        ("ENCRYPTED", {}, r"set security.protocol|closed the connection"),
        ("ENCRYPTED", scram, r"speak(s)? TLS: set security.protocol=SSL|closed the connection"),
        ("ENCRYPTED", trusted | scram | {"security.protocol": "SASL_SSL"}, "expects no SASL|closed the connection"),
    ]

    async def run() -> None:
        for listener, settings, said in cases:
            async with asyncio.timeout(WAIT_S), Admin(kafka.at(listener), security=settings) as admin:
                with pytest.raises(ClientError, match=said) as raised:
                    await (await admin.cluster.any_connection()).request(MetadataRequest(topics=[]))
                assert "\n" not in str(raised.value), (listener, settings)

    asyncio.run(run())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sessions_are_renewed_for_as_long_as_the_client_lives(
    kafka: SecureKafka, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session lasts four seconds here; Kafka would close the connection at the next request after it."""
    begun = 0
    begin = SaslSession.begin

    async def counted(session: SaslSession) -> None:
        nonlocal begun
        await begin(session)
        begun += 1

    monkeypatch.setattr(SaslSession, "begin", counted)

    async def run() -> None:
        security = Security.of(kafka.security("BRIEF", mechanism))
        connection = await Connection.open(parse_address(kafka.at("BRIEF")), security=security)
        while begun < 3:
            await asyncio.gather(*(connection.request(MetadataRequest(topics=[])) for _ in range(5)))
        assert connection.is_open
        connection.close()

    asyncio.run(run())


def test_commands_with_a_file_of_kafkas_properties(
    kafka: SecureKafka, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """The file is one that Kafka's own tools take."""
    settings = kafka.security("SECURE", "SCRAM-SHA-512", "file:" + str(tmp_path / "password"))
    (tmp_path / "password").write_text(PASSWORD + "\n")
    words = ("-b", kafka.at("SECURE"), "--command-config", properties(tmp_path, settings))
    use_commands(new_name("cli"), *words)
    (tmp_path / "password").write_text("guessed")
    refused = CliRunner().invoke(app, ["topic", "list", *words])
    assert refused.exit_code == 1 and "refused SCRAM-SHA-512 user alice" in refused.output
    assert "guessed" not in refused.output


@pytest.mark.parametrize("way", ["mutual TLS", "OAUTHBEARER over TLS"])
def test_commands_by_certificate_and_by_token(
    kafka: SecureKafka, way: str, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    listener, mechanism = WAYS[way]
    settings = mutual(kafka) if listener == "MUTUAL" else kafka.security(listener, mechanism)
    use_commands(new_name("cli"), "-b", kafka.at(listener), "--command-config", properties(tmp_path, settings))


def test_commands_with_a_profile(kafka: SecureKafka, tmp_path: Path, new_name: Callable[[str], str]) -> None:
    settings = kafka.security("SECURE", "PLAIN") | {"bootstrap": kafka.at("SECURE")}
    path = tmp_path / "ottla" / "profiles.toml"
    path.parent.mkdir()
    path.write_text("[secured]\n" + "".join(f'"{name}" = {json.dumps(text)}\n' for name, text in settings.items()))
    path.chmod(0o600)
    use_commands(new_name("cli"), "--profile", "secured", env={"XDG_CONFIG_HOME": str(tmp_path)})


def properties(directory: Path, settings: dict[str, str]) -> str:
    """The path of a file of Kafka's properties with these settings; the lines of one are written as one line."""
    path = directory / "client.properties"
    path.write_text("".join(f"{name}={text}\n".replace("\n", "\\n")[:-2] + "\n" for name, text in settings.items()))
    return str(path)


def use_commands(topic: str, *words: str, env: dict[str, str] | None = None) -> None:
    """Create a topic, write a record, read it, with these words of who asks and whom."""

    def run(*command: str, text: str = "") -> str:
        done = CliRunner().invoke(app, [*command, *words], input=text, env=env)
        assert done.exit_code == 0, done.output
        assert PASSWORD not in done.output
        return done.stdout

    run("topic", "create", topic)
    run("produce", topic, text="a value\n")
    assert "a value" in run("consume", topic, "--from-beginning", "-n", "1")


def test_a_delegation_token_authenticates(kafka: SecureKafka) -> None:
    async def run() -> None:
        owner = Security.of(kafka.security("SECURE", "SCRAM-SHA-512"))
        connection = await Connection.open(parse_address(kafka.at("SECURE")), security=owner)
        made = await connection.request(CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1))
        assert made.error_code == 0, made
        while True:  # the broker learns of the token from the metadata log
            known = await connection.request(DescribeDelegationTokenRequest(owners=None))
            if made.token_id in [each.token_id for each in known.tokens]:
                break
        connection.close()
        hmac = base64.b64encode(bytes(made.hmac)).decode()
        line = (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{made.token_id}" password="{hmac}" tokenauth="true";'
        )
        given = kafka.security("SECURE") | {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": line}
        async with asyncio.timeout(WAIT_S), Admin(kafka.at("SECURE"), security=given) as admin:
            await admin.topics.names()

    asyncio.run(run())


def test_a_password_that_changes_in_its_file_is_used_by_the_next_connection(kafka: SecureKafka, tmp_path: Any) -> None:
    path = tmp_path / "password"
    path.write_text("not yet known")
    given = kafka.security("SECURE", "SCRAM-SHA-256", f"file:{path}")

    async def ask() -> None:
        async with asyncio.timeout(WAIT_S), Admin(kafka.at("SECURE"), security=given) as admin:
            await admin.topics.names()

    with pytest.raises(AuthenticationError):
        asyncio.run(ask())
    path.write_text(PASSWORD)
    asyncio.run(ask())
