"""A node refuses to start with what it could only pretend to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model.errors import ApiError, ErrorCode
from ottla.testing.broker import EmbeddedBroker

KAFKA = "org.apache.kafka.common.security"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"listeners": "SSL://127.0.0.1:0"}, "listener SSL: ssl.keystore.location is not set"),
        ({"listeners": "SASL_PLAINTEXT://127.0.0.1:0"}, "gssapi.sasl.jaas.config is not set, and GSSAPI needs it"),
        (
            {"listeners": "INSIDE://127.0.0.1:0", "listener.security.protocol.map": "INSIDE:TLS"},
            "listener INSIDE has the security protocol TLS, which is none of PLAINTEXT, SSL",
        ),
        ({"listeners": "WHO://127.0.0.1:0"}, "listener WHO is not in listener.security.protocol.map"),
        ({"listener.security.protocol.map": "PLAINTEXT"}, "'PLAINTEXT' is not of the form NAME:PROTOCOL"),
        ({"advertised.listeners": "here:9092"}, "advertised.listeners: 'here:9092' is not of the form"),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0",
        ),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"},
            "Each listener must have a different name, listeners: PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        ),
        ({"listeners": "PLAINTEXT://127.0.0.1:0,plaintext://127.0.0.1:1"}, "Each listener must have a different name"),
        ({"process.roles": "broker"}, "must say where the controllers are"),
        ({"process.roles": "broker", "controller.quorum.voters": "1@localhost:1"}, "must not be among"),
        ({"controller.quorum.voters": "1@localhost:1,2@localhost:2"}, "controller.listener.names must have a name"),
        ({"controller.quorum.voters": "2@localhost:2"}, "node 1 must be among controller.quorum.voters"),
        ({"process.roles": "controller"}, "may only have names of controller.listener.names"),
        ({"listeners": "CONTROLLER://127.0.0.1:0"}, "there must be a listener for clients"),
        ({"inter.broker.listener.name": "INSIDE"}, "inter.broker.listener.name must be a listener name"),
        ({"authorizer.class.name": "org.example.Mine"}, "the only authorizer here is org.apache.kafka.*Authorizer"),
        (
            {"early.start.listeners": "PLAINTEXT,INSIDE"},
            "early.start.listeners contains listener INSIDE, but this is not contained in listeners or controller",
        ),
        ({"early.start.listeners": "plaintext"}, "early.start.listeners contains listener plaintext"),
        ({"super.users": "admin"}, "super.users cannot be read: expected a principal of the form Type:name"),
        (
            {"super.users": "User:admin,User:CN=node,O=x"},
            "separated by semicolons, not commas: User:admin;User:CN=node,O=x",
        ),
        ({"security.inter.broker.protocol": "SSL"}, "which are PLAINTEXT: there is no SSL"),
        ({"ottla.audit.to": "file", "ottla.audit.file": "/nowhere/audit.log"}, "there is no directory /nowhere"),
        ({"ottla.audit.to": "file", "ottla.audit.file": "/"}, "/ is a directory"),
        ({"ottla.tenant.storage.max.bytes@acme": "abc"}, "abc for configuration ottla.tenant.storage.max.bytes"),
        ({"ottla.tenant.partitions.max@a.b": "1"}, "a tenant's name has at most"),
        (
            {"ottla.tenant.partitions.max@acme": "1"},
            "ottla config set broker default ottla.tenant.partitions.max@acme=1",
        ),
        *(
            (
                {
                    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
                    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
                    "controller.quorum.voters": "1@localhost:1,2@localhost:2",
                    **mechanism,
                },
                "controllers need their quorum before they know SCRAM users: set it to PLAIN",
            )
            for mechanism in (
                {"sasl.mechanism.controller.protocol": "SCRAM-SHA-512"},
                {"sasl.mechanism.controller.protocol": "scram-sha-512"},
                {"listener.name.controller.sasl.mechanism.controller.protocol": "SCRAM-SHA-256"},
            )
        ),
        (
            {
                "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
            },
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is used",
        ),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited"),
        *(
            ({name: "com.example.Mine"}, f"{name} names Java code, which cannot be run.*: com.example.Mine")
            for name in (
                "principal.builder.class",
                "ssl.engine.factory.class",
                "security.providers",
                "sasl.login.class",
                "sasl.client.callback.handler.class",
                "listener.name.plaintext.principal.builder.class",
                "listener.name.plaintext.ssl.engine.factory.class",
                "listener.name.plaintext.plain.sasl.login.callback.handler.class",
            )
        ),
        (
            {"ssl.engine.factory.class": f"{KAFKA}.ssl.CommonNameLoggingSslEngineFactory"},
            f"only {KAFKA}.ssl.DefaultSslEngineFactory is",
        ),
        *(
            (
                {
                    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
                    "sasl.enabled.mechanisms": mechanism,
                    "security.inter.broker.protocol": "SASL_PLAINTEXT",
                    f"listener.name.sasl_plaintext.{mechanism.lower()}.sasl.server.callback.handler.class": handler,
                },
                "sasl.server.callback.handler.class of .* names Java code, which cannot be run",
            )
            for mechanism, handler in (
                ("PLAIN", "com.example.Mine"),
                ("SCRAM-SHA-512", f"{KAFKA}.plain.internals.PlainServerCallbackHandler"),
                ("PLAIN", f"{KAFKA}.oauthbearer.OAuthBearerValidatorCallbackHandler"),
            )
        ),
    ],
)
def test_a_node_does_not_pretend(tmp_path: Path, settings: dict[str, str], told: str) -> None:
    with pytest.raises(ApiError, match=told) as refused:
        EmbeddedBroker(tmp_path / "data", settings).start()
    assert refused.value.code == ErrorCode.INVALID_CONFIG
    assert not (tmp_path / "data").exists(), "nothing was formatted"


def test_a_listener_of_another_name_in_plain_text_is_fine(tmp_path: Path) -> None:
    settings = {
        "listeners": "INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    with EmbeddedBroker(tmp_path, settings) as broker:
        assert broker.bootstrap


def test_kafkas_own_classes_are_no_reason(tmp_path: Path) -> None:
    own = {
        "principal.builder.class": f"{KAFKA}.authenticator.DefaultKafkaPrincipalBuilder",
        "ssl.engine.factory.class": f"{KAFKA}.ssl.DefaultSslEngineFactory",
        "listener.name.plaintext.plain.sasl.login.class": f"{KAFKA}.authenticator.DefaultLogin",
        "security.providers": "",
    }
    with EmbeddedBroker(tmp_path, own) as broker:
        assert broker.bootstrap
