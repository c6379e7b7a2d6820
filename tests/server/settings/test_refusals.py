"""A node refuses to start with what it could only pretend to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model.errors import ApiError, ErrorCode
from ottla.testing.broker import EmbeddedBroker


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"listeners": "SSL://127.0.0.1:0"}, "listener SSL wants SSL, which is not served yet"),
        ({"listeners": "SASL_PLAINTEXT://127.0.0.1:0"}, "wants SASL_PLAINTEXT"),
        (
            {"listeners": "INSIDE://127.0.0.1:0", "listener.security.protocol.map": "INSIDE:SASL_SSL"},
            "listener INSIDE wants SASL_SSL",
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
        ({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}, "access control"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited"),
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
