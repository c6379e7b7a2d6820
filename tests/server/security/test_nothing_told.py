"""No secret is in a log, an answer, an error or a file beside the keys: a node with every kind of secret, its registry,
clients that log in and fail to, and commands, with all logs at DEBUG.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import invoke
from tests.registry.security.web import ask, basic
from tests.server.security.oauth_settings import claims
from tests.server.security.secured import MODULES, Certificates, plain_jaas
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.model.resources import Resource, ResourceType
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

USERS = {"admin": "secret-of-admin", "alice": "secret-of-alice"}
WRONG, CHANGED, KEY, TOKENS = "wrong-secret", "changed-secret", "secret-of-the-key", "secret-of-all-the-tokens-of-nodes"
INSTANCES, CLIENT = "secret-of-the-instances", "secret-of-the-client-of-a-provider"
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"


def node_settings(directory: Path, certificates: Certificates) -> dict[str, str]:
    identity = certificates.authority.node(common_name="node")
    (directory / "keys.json").write_text('{"keys": []}')
    scram = f'{MODULES}.scram.ScramLoginModule required username="admin" password="{USERS["admin"]}";'
    bearer = f'{MODULES}.oauthbearer.OAuthBearerLoginModule required clientId="me" clientSecret="{CLIENT}";'
    at = "listener.name.sasl_ssl"
    return {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.enabled.mechanisms": MECHANISMS,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": identity.chain_pem,
        "ssl.keystore.key": identity.key_pem(KEY),
        "ssl.key.password": KEY,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.trusted),
        f"{at}.plain.sasl.jaas.config": plain_jaas("admin", USERS),
        f"{at}.scram-sha-256.sasl.jaas.config": scram,
        f"{at}.scram-sha-512.sasl.jaas.config": scram,
        f"{at}.oauthbearer.sasl.jaas.config": bearer,
        "sasl.oauthbearer.jwks.endpoint.url": (directory / "keys.json").as_uri(),
        "delegation.token.secret.key": TOKENS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "connection.failed.authentication.delay.ms": "1",
        "ottla.audit.to": "file,topic",
        "ottla.audit.events": "refused,changes,authentication,all",
        "ottla.audit.file": str(directory / "audit.log"),
        "offsets.topic.num.partitions": "1",
    }


def test_no_secret_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level("DEBUG")
    certificates = Certificates.make(tmp_path / "certificates")
    settings = node_settings(tmp_path, certificates)
    trust = certificates.ours()
    told: list[str] = []

    def security(mechanism: str, password: str, user: str = "admin") -> dict[str, str]:
        own = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism}
        return own | {"sasl.username": user, "sasl.password": password} | trust

    with EmbeddedBroker(tmp_path / "data", settings, security("PLAIN", USERS["admin"])) as broker:
        with Blocking(broker.bootstrap, security=broker.security) as client:
            admin = client.admin
            admin.users.set_password("carol", CHANGED)
            token = admin.tokens.create()
            told += [repr(admin.users.all()), repr(token), repr(client)]
            changes = {
                "listener.name.sasl_ssl.plain.sasl.jaas.config": plain_jaas("admin", {**USERS, "dora": CHANGED}),
                "listener.name.sasl_ssl.ssl.key.password": CHANGED,
            }
            for name, text in changes.items():
                try:
                    admin.configs.set(Resource(ResourceType.BROKER, "1"), {name: text})
                except ApiError as error:
                    told.append(str(error))
            told.append(repr(admin.configs.describe(Resource(ResourceType.BROKER, "1"))))
        told += logins(broker, certificates, security, token.password)
        told += of_a_registry(broker, certificates)
        told += commands(tmp_path, broker, security("PLAIN", USERS["admin"]), security("PLAIN", WRONG))
        until(lambda: "AUTHENTICATE" in (tmp_path / "audit.log").read_text())
        with Blocking(broker.bootstrap, security=broker.security) as client:
            told += [repr(each.value) for each in client.read("__ottla_audit")]
    shown = capfd.readouterr()
    texts = [caplog.text, shown.out, shown.err, (tmp_path / "audit.log").read_text(), *told]
    secrets = [*USERS.values(), WRONG, CHANGED, KEY, TOKENS, INSTANCES, CLIENT, token.password]
    assert len(caplog.text) > 1_000 and "did not authenticate" in caplog.text
    assert "PRIVATE KEY" not in "".join(texts)
    assert not [(each, text) for each in secrets for text in texts if each in text]


def logins(broker: EmbeddedBroker, certificates: Certificates, security: Any, token: str) -> list[str]:
    """Log in by every mechanism, rightly and wrongly; return what was said."""
    told = []
    for mechanism, user, password in (
        ("PLAIN", "alice", USERS["alice"]),
        ("SCRAM-SHA-256", "carol", CHANGED),
        ("SCRAM-SHA-512", "carol", CHANGED),
    ):
        for given in (password, WRONG):
            with Blocking(broker.bootstrap, security=security(mechanism, given, user)) as client:
                try:
                    told.append(repr(client.admin.topics.names()))
                except (ClientError, ApiError) as error:
                    told += [repr(error), str(error)]
    with RawConnection(broker.bootstrap, tls=certificates.context) as connection:
        connection.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        message = f"n,,\x01auth=Bearer {WRONG}.{json.dumps(claims())}.x\x01\x01".encode()
        told.append(repr(connection.call(SaslAuthenticateRequest(auth_bytes=message), 2)))
    return told


def of_a_registry(broker: EmbeddedBroker, certificates: Certificates) -> list[str]:
    own = {f"kafkastore.{name}": text for name, text in broker.security.items()}
    own |= {"authentication.method": "BASIC", "inter.instance.secret": INSTANCES, "super.users": "User:admin"}
    registry = Registry(broker.bootstrap, settings=own).start()
    try:
        answers = [
            ask(registry.url, "GET", "/subjects", basic("admin", password)) for password in (USERS["admin"], WRONG)
        ]
        assert [each.status for each in answers] == [200, 401]
        return [repr(each) for each in answers]
    finally:
        registry.stop()


def commands(directory: Path, broker: EmbeddedBroker, right: dict[str, str], wrong: dict[str, str]) -> list[str]:
    told = []
    for name, settings in (("right", right), ("wrong", wrong)):
        path = directory / f"{name}.properties"
        path.write_text("".join(f"{key}={text}\n" for key, text in settings.items()))
        for words in (
            ("topic", "list"),
            ("user", "list"),
            ("token", "list"),
            ("security", "audit"),
            ("config", "get", "broker", "1"),
        ):
            done = invoke(*words, "-b", broker.bootstrap, "--command-config", str(path))
            assert name == "right" or done.code == 1
            told += [done.out, done.err]
    return told
