"""A node refuses to start with what it could only pretend to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model.errors import ApiError, ErrorCode
from ottla.testing.broker import Broker


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
        ({"process.roles": "broker"}, "process.roles is broker"),
        ({"controller.quorum.voters": "1@localhost:1,2@localhost:2"}, "names other nodes .2@localhost:2."),
        ({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}, "access control"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited"),
    ],
)
def test_a_node_does_not_pretend(tmp_path: Path, settings: dict[str, str], told: str) -> None:
    with pytest.raises(ApiError, match=told) as refused:
        Broker(tmp_path / "data", settings).start()
    assert refused.value.code == ErrorCode.INVALID_CONFIG
    assert not (tmp_path / "data").exists(), "nothing was formatted"


def test_a_listener_of_another_name_in_plain_text_is_fine(tmp_path: Path) -> None:
    settings = {
        "listeners": "INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    with Broker(tmp_path, settings) as broker:
        assert broker.bootstrap
