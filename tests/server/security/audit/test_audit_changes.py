"""Changes in the audit log: requests that need no right, and nodes that check none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.server.security.audit.test_audit_log import settings
from tests.server.security.secured import log_in
from tests.support.requests.raw import RawConnection

from ottla.model.errors import ErrorCode
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.security.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest


@pytest.mark.parametrize("has_authorizer", [True, False])
def test_tokens_and_topics(tmp_path: Path, has_authorizer: bool) -> None:
    path = tmp_path / "audit.log"
    values = settings(to="file", file=str(path)) | {"delegation.token.secret.key": "a-secret-key"}
    if not has_authorizer:
        values = {name: value for name, value in values.items() if name not in ("authorizer.class.name", "super.users")}
    with EmbeddedBroker(tmp_path / "data", values) as broker:
        secret = use(broker)
    lines = path.read_text()
    changes = [
        (each["principal"], each["resource"], each["outcome"], each["named"])
        for each in map(json.loads, lines.splitlines())
        if each["action"] == "CHANGE"
    ]
    assert changes == [
        ("User:admin", "CreateDelegationToken", "allowed", "owner who asks; renewer User:bob"),
        ("User:alice", "RenewDelegationToken", "refused", "by 1000 ms"),
        ("User:admin", "RenewDelegationToken", "allowed", "by 1000 ms"),
        ("User:admin", "ExpireDelegationToken", "allowed", "now"),
        ("User:admin", "CreateTopics", "allowed", "orders"),
        ("User:admin", "Metadata", "allowed", "made"),
    ]
    assert secret.hex() not in lines
    assert secret.decode("latin-1") not in lines


def use(broker: EmbeddedBroker) -> bytes:
    """Admin has a token, which alice tries to renew; then admin creates topics. Return the token's secret half."""
    with RawConnection(broker.bootstrap) as admin, RawConnection(broker.bootstrap) as alice:
        log_in(admin), log_in(alice, "alice")
        renewer = CreateDelegationTokenRequest.CreatableRenewers(principal_type="User", principal_name="bob")
        token: Any = admin.call(CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1), 3)
        assert token.error_code == 0
        renewal = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=1_000)
        answer: Any = alice.call(renewal, 2)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        answer = admin.call(renewal, 2)
        assert answer.error_code == 0
        answer = admin.call(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
        assert answer.error_code == 0
        topic = CreateTopicsRequest.CreatableTopic(
            name="orders", num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        answer = admin.call(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
        assert answer.topics[0].error_code == 0
        made = MetadataRequest.Topic(name="made")
        admin.call(MetadataRequest(topics=[made], allow_auto_topic_creation=True), 12)
    return bytes(token.hmac)
