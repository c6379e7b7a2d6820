"""Spark against a real Kafka and Ottla with SASL_SSL: our source and sink get in with every mechanism, Spark's own
connector does so with a delegation token that Spark's provider got, and nothing of Spark shows a secret.
"""

import base64
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.compat.security.every_mechanism import TOKEN, EveryMechanism
from tests.compat.security.secure_node import SecureNode
from tests.server.security.secured import PASSWORDS
from tests.support import tools
from tests.support.processes.kdc import Kdc
from tests.support.processes.secure_kafka import PASSWORD, SecureKafka
from tests.support.profiles import write_profiles
from tests.support.spark import sessions as sparks

from ottla.client.blocking.blocking import Blocking
from ottla.client.security.names import SECRETS
from ottla.security.acls import AclResourceType
from ottla.spark.runtime.session import _DRIVER, SETTINGS
from ottla.spark.sink.settings import write_settings
from ottla.testing.registry import Registry

pytestmark = [pytest.mark.spark, pytest.mark.slow]
DRIVER = Path(__file__).parent / "drivers" / "secured.py"
# Of alice's rows with each mechanism that the other two clusters are not read with.
BY_MECHANISM = {
    "alice-by-scram": "SCRAM-SHA-256",
    "alice-by-bearer": "OAUTHBEARER",
    "alice-by-ticket": "GSSAPI",
    "alice-by-token": TOKEN,
}


@pytest.fixture(scope="module")
def kafka(spark_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    secure = SecureKafka(tmp_path_factory.mktemp("secure"))
    try:
        secure.start()
        yield secure
    finally:
        secure.stop()


def settings_with_every_secret(kafka: SecureKafka, *, by_jaas: bool = True) -> tuple[dict[str, str], list[str]]:
    """Settings in which each kind of secret is given itself, and the secrets. Who logs in may be said in one way only:
    in a JAAS line or in `sasl.username` and `sasl.password`.
    """
    identity = kafka.authority.client("alice")
    key = identity.key_pem("of the key")
    settings = kafka.security("SECURE", "PLAIN") | {
        "ssl.keystore.certificate.chain": identity.chain_pem,
        "ssl.keystore.key": key,
        "ssl.key.password": "of the key",
        "ssl.truststore.password": "of the truststore",
    }
    if by_jaas:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        user, password = settings.pop("sasl.username"), settings.pop("sasl.password")
        settings["sasl.jaas.config"] = f'{module} username="{user}" password="{password}";'
    return settings, [PASSWORD, key.splitlines()[2], "of the key", "of the truststore"]


@pytest.fixture(scope="module")
def ottla(spark_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    secure = SecureNode("ottla", tmp_path_factory.mktemp("ottla"))
    try:
        yield secure.start()
    finally:
        secure.stop()


@pytest.fixture(scope="module")
def every(spark_tools: None, kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EveryMechanism]:
    tools.require(tools.missing_node())
    more = [
        (AclResourceType.TOPIC, "_ottla_spark_sinks"),
        (AclResourceType.GROUP, "spark-copy-alice"),
        (AclResourceType.TRANSACTIONAL_ID, "ottla-spark/"),
    ]
    with EveryMechanism(tmp_path_factory.mktemp("every"), kdc, more) as node:
        yield node


def with_a_token(ottla: SecureNode, topic: str) -> dict[str, dict[str, str]]:
    """Settings of Spark's token provider, with which it logs in as alice, and options of Spark's own connector."""
    place, login = ottla.at("SASL_SSL"), ottla.security("SASL_SSL", "SCRAM-SHA-512").java()
    trust = {name: value for name, value in login.items() if name.startswith("ssl.")}
    provider = {
        "auth.bootstrap.servers": place,
        "target.bootstrap.servers.regex": re.escape(place),
        "security.protocol": "SASL_SSL",
        **{f"kafka.{name}": value for name, value in login.items() if name.startswith(("sasl.", "ssl."))},
    }
    trusting = {f"kafka.{name}": value for name, value in trust.items()}
    return {"provider": provider, "options": {"kafka.bootstrap.servers": place, "subscribe": topic, **trusting}}


@pytest.fixture(scope="module")
def registry(ottla: SecureNode) -> Iterator[Registry]:
    """A registry of the secured cluster, with HTTPS and the cluster's users."""
    own = ottla.security("SASL_SSL", "SCRAM-SHA-512", "admin").java()
    settings = {f"kafkastore.{name}": value for name, value in own.items()} | ottla.certificates.node("registry")
    settings |= {"listeners": "https://127.0.0.1:0", "authentication.method": "basic", "super.users": "User:admin"}
    made = Registry(ottla.at("SASL_SSL"), settings=settings).start()
    yield made
    made.stop()


def by_profile(ottla: SecureNode, directory: Path) -> tuple[dict[str, str], dict[str, str]]:
    """What the driver does with a profile of admin, and the environment in which it is there."""
    profile = {"bootstrap": ottla.at("SASL_SSL"), **ottla.security("SASL_SSL", "SCRAM-SHA-256", "admin").java()}
    told = {"name": "safe", "topic": "profiled", "copies": "copied", "checkpoint": str(directory / "copied-checkpoint")}
    for topic in ("profiled", "copied"):
        ottla.create(topic)
    return told, write_profiles(directory / "home", {"safe": profile})


def typed(ottla: SecureNode, registry: Registry, topic: str) -> dict[str, object]:
    """Options of typed columns: alice shows the cluster a certificate, and tells the registry a password."""
    identity = ottla.certificates.authority.client("alice")
    login = ottla.security("SSL").java() | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": identity.chain_pem,
        "ssl.keystore.key": identity.key_pem("of alice's key"),
        "ssl.key.password": "of alice's key",
    }
    options = {f"kafka.{name}": value for name, value in login.items()} | {
        "kafka.bootstrap.servers": ottla.at("MUTUAL"),
        "value.format": "avro",
        "schema.registry.url": registry.url,
        "schema.registry.basic.auth.user.info": f"alice:{PASSWORDS['alice']}",
        "schema.registry.ssl.truststore.type": "PEM",
        "schema.registry.ssl.truststore.location": str(ottla.certificates.trusted),
    }
    return {"topic": topic, "options": options}


def secret_values(told: object) -> list[str]:
    """The values of all settings that are secrets, wherever they are in a document."""
    if isinstance(told, list):
        return [value for each in told for value in secret_values(each)]
    if not isinstance(told, dict):
        return []
    own = [value for name, value in told.items() if name.removeprefix("kafka.") in SECRETS or "auth.user" in name]
    return own + [value for each in told.values() for value in secret_values(each)]


def as_pickled(secret: str) -> str:
    """How a `Secret` is written in a pickle: nobody reads it by chance, but everybody can decode it."""
    return base64.b85encode(secret.encode()).decode()


def test_secured_clusters_are_read_and_written_and_no_secret_is_shown(
    kafka: SecureKafka, ottla: SecureNode, every: EveryMechanism, registry: Registry, tmp_path: Path
) -> None:
    """One driver does it with all clusters, for the start of a JVM takes seconds."""
    settings, secrets = settings_with_every_secret(kafka)
    ours = ottla.security("SASL_SSL", "SCRAM-SHA-512", "admin").java()
    places = {"rows": (kafka.at("SECURE"), settings), "alice-rows": (ottla.at("SASL_SSL"), ours)} | {
        topic: (every.at(way), every.security(way).java()) for topic, way in BY_MECHANISM.items()
    }
    profile, home = by_profile(ottla, tmp_path)
    told = {
        "profile": profile,
        "clusters": [
            {"topic": topic, "bootstrap": place, "security": security} for topic, (place, security) in places.items()
        ],
        "token": with_a_token(ottla, "alice-rows"),
        "typed": typed(ottla, registry, ottla.create("alice-typed")),
        "jars": sparks.jars("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2"),
        "directory": str(tmp_path),
    }
    with ExitStack() as stack:
        clients = {
            topic: stack.enter_context(Blocking(place, security=security))
            for topic, (place, security) in places.items()
        }
        for topic, client in clients.items():
            for name in (topic, f"{topic}-copy"):
                client.admin.topics.create(name)
        done = subprocess.run(
            [sys.executable, str(DRIVER)],
            input=json.dumps(told),
            capture_output=True,
            text=True,
            env=sparks.environment() | home,
            timeout=500,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        for topic, client in clients.items():
            assert f"read {topic} 100\n" in done.stdout and f"copied {topic} 100\n" in done.stdout
            assert client.admin.groups.offsets(f"spark-copy-{topic}"), "the query's offsets were not committed"
        (token,) = clients["alice-rows"].admin.tokens.all()
    assert str(token.owner) == "User:alice"
    assert "typed 100\n" in done.stdout
    assert "by the option 100 " in done.stdout and "by the session 100\n" in done.stdout
    assert "tokens 1\n" in done.stdout and "read with a token 100\n" in done.stdout
    # Plans, answers and web pages were printed.
    assert all(
        word in done.stdout for word in ("Physical Plan", "sparkProperties", "Runtime Information", "Details for")
    )
    written = [path for path in tmp_path.rglob("*") if path.is_file() and "home" not in path.parts]
    assert any("checkpoint" in path.parts for path in written)
    (log,) = (path for path in written if path.name.startswith("events_"))
    assert "SparkListenerSQLExecutionStart" in log.read_text(), "it is not compressed"
    shown = {"standard output": done.stdout, "standard error": done.stderr}
    shown |= {str(path): path.read_bytes().decode("latin-1") for path in written}
    secrets += [*PASSWORDS.values(), token.password, every.security(TOKEN).password, "of alice's key"]
    whole = secret_values(told)
    assert len(whole) > 11
    secrets += [*whole, *map(as_pickled, (*whole, *secrets))]
    leaks = [(secret, where) for secret in secrets for where, text in shown.items() if secret in text]
    assert not leaks


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_spark_is_told_which_options_are_secrets(name: str) -> None:
    """Spark replaces the values of options whose names match, wherever it shows options."""
    for setting in ("spark.sql.redaction.options.regex", "spark.redaction.regex"):
        assert re.search((SETTINGS | _DRIVER)[setting], f"kafka.{name}"), setting


@pytest.mark.parametrize("by_jaas", [True, False])
def test_settings_of_a_write_show_no_secret(kafka: SecureKafka, by_jaas: bool) -> None:
    settings, secrets = settings_with_every_secret(kafka, by_jaas=by_jaas)
    options = {f"kafka.{name}": value for name, value in settings.items()}
    registry = {"schema.registry.basic.auth.user.info": f"alice:{PASSWORD}"}
    made = write_settings(
        options | registry | {"kafka.bootstrap.servers": kafka.at("SECURE"), "topic": "rows"}, streaming=False
    )
    copy = pickle.loads(pickle.dumps(made))
    assert copy.kafka.security == made.kafka.security and copy.client("task").security == made.kafka.security
    for secret in secrets:
        assert secret not in repr(made) + str(pickle.dumps(made)) + repr(made.client("task"))
