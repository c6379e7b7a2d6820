"""What the tests of client telemetry say to a node."""

from __future__ import annotations

from tests.server.talk import alter
from tests.support.requests.raw import RawConnection
from tests.telemetry.pushes import gauge, payload

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.cluster.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.cluster.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

CLIENT_METRICS = 16
GET, PUSH = 71, 72
PAYLOAD = payload(gauge("org.apache.kafka.producer.record.queue.time.avg", 1.5), group_id="g")


class TelemetryTalk:
    """A client instance with a connection of its own. `said_name` has it tell its name and version first."""

    def __init__(self, bootstrap: str, *, client_id: str = "app", said_name: bool = True) -> None:
        self.connection = RawConnection(bootstrap)
        self.client_id = client_id
        self.instance_id = NO_ID
        self.subscription_id = 0
        self.answer: GetTelemetrySubscriptionsResponse | None = None
        if said_name:
            self.connection.call(ApiVersionsRequest(client_software_name="me", client_software_version="1.0"), 3)

    def ask(self) -> ErrorCode:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=self.instance_id)
        self.connection.send(request_frame(request, 0, 1, self.client_id))
        answer = self.connection.decode(GET, 0, self.connection.receive(), 1)
        assert isinstance(answer, GetTelemetrySubscriptionsResponse)
        self.answer = answer
        if not answer.error_code:
            self.instance_id, self.subscription_id = answer.client_instance_id, answer.subscription_id
        return ErrorCode(answer.error_code)

    def asked(self) -> GetTelemetrySubscriptionsResponse:
        """The answer that tells what to push."""
        assert self.ask() is ErrorCode.NONE
        assert self.answer is not None
        return self.answer

    def push(self, metrics: bytes = PAYLOAD, compression: int = 0, *, is_last: bool = False) -> ErrorCode:
        request = PushTelemetryRequest(
            client_instance_id=self.instance_id,
            subscription_id=self.subscription_id,
            terminating=is_last,
            compression_type=compression,
            metrics=metrics,
        )
        self.connection.send(request_frame(request, 0, 1, self.client_id))
        answer = self.connection.decode(PUSH, 0, self.connection.receive(), 1)
        assert isinstance(answer, PushTelemetryResponse)
        return ErrorCode(answer.error_code)

    def close(self) -> None:
        self.connection.close()


def subscribe(bootstrap: str, name: str = "s", **settings: object) -> None:
    """Make or change a subscription; underscores in the names of settings stand for dots."""
    with RawConnection(bootstrap) as connection:
        alter(connection, CLIENT_METRICS, name, **settings)
