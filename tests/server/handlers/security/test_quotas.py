"""The handlers of client quotas: what Kafka's own tests of them do not reach is compared in tests/compat."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.admin import Admin

from ottla.cluster.entities import QuotaChanged
from ottla.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.messages.security.describe_client_quotas import DescribeClientQuotasRequest

_Entry = AlterClientQuotasRequest.EntryData


def entry(user: str | None, rate: float | None) -> _Entry:
    return _Entry(
        entity=[_Entry.EntityData(entity_type="user", entity_name=user)],
        ops=[_Entry.OpData(key="producer_byte_rate", value=rate or 0.0, remove=rate is None)],
    )


def described(admin: Admin, version: int = 1) -> dict[str | None, float]:
    answer: Any = admin.ask(DescribeClientQuotasRequest(components=[], strict=False), version)
    return {each.entity[0].entity_name: each.values[0].value for each in answer.entries}


@pytest.mark.parametrize("version", [0, 1])
def test_subscribers_follow_quotas(version: int) -> None:
    admin = Admin()
    admin.ask(AlterClientQuotasRequest(entries=[entry("alice", 5.0), entry(None, 7.0)], validate_only=False), version)
    assert described(admin, version) == {"alice": 5.0, None: 7.0}
    admin.ask(AlterClientQuotasRequest(entries=[entry("alice", None)], validate_only=False), version)
    assert [change for change in admin.changes if isinstance(change, QuotaChanged)] == [
        QuotaChanged((("user", "alice"),), "producer_byte_rate", 5.0),
        QuotaChanged((("user", None),), "producer_byte_rate", 7.0),
        QuotaChanged((("user", "alice"),), "producer_byte_rate", None),
    ]


def test_quotas_survive_a_restart() -> None:
    admin = Admin()
    admin.ask(AlterClientQuotasRequest(entries=[entry("alice", 5.0)], validate_only=False))
    assert described(Admin(admin.stop())) == {"alice": 5.0}
