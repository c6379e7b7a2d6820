"""Requests of brokers are exempt from quotas only if their client may act as a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.server.quotas.quota_records import set_quota
from tests.server.quotas.test_client_quotas import EVERYBODY, holds
from tests.server.talk import FETCH_VERSION, fetch_request
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.model.errors import ErrorCode
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.message import Request, Response
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.shares.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.messages.txns.write_txn_markers import WriteTxnMarkersRequest

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def fetch_of_follower() -> FetchRequest:
    request = fetch_request({("t", 0): 0})
    request.replica_id = 7
    return request


REQUESTS: list[tuple[Request[Response], int]] = [
    (WriteTxnMarkersRequest(markers=[]), 1),
    (ReadShareGroupStateRequest(group_id="g", topics=[]), 0),
    (fetch_of_follower(), FETCH_VERSION),
]


@pytest.mark.parametrize(("request_", "version"), REQUESTS)
@pytest.mark.parametrize("is_broker", [False, True])
def test_a_request_of_brokers_that_is_refused_is_charged(
    tmp_path: Path, request_: Request[Response], version: int, is_broker: bool
) -> None:
    settings = AUTHORIZER | ({"super.users": "User:ANONYMOUS"} if is_broker else {})
    with EmbeddedBroker(tmp_path, settings) as broker, RawConnection(broker.bootstrap) as client:
        set_quota(broker, EVERYBODY, "request_percentage", 0.0001)  # ten microseconds in ten seconds
        answer: Any = client.call(request_, version)
        if is_broker:
            assert getattr(answer, "error_code", 0) != ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            assert holds(broker) == [0]
        else:
            until(lambda: holds(broker), lambda found: found == [1])
