"""Requests that are left in the buffer at the end of a turn are handled, also if reading is resumed before."""

import pytest
from tests.support.requests.raw import RawConnection

from ottla.model import limits
from ottla.server.net.connection import ServerConnection
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest

REQUESTS = 5


def test_reading_is_resumed_before_the_rest_is_handled(
    ottla_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn of this connection that was waiting may come first. It finds nothing new to read: the rest used to stay
    in the buffer until the client sent more, which it never did if it waited for answers.
    """
    monkeypatch.setattr(limits, "REQUESTS_PER_TURN_MAX", 1)
    handle_frames = ServerConnection._handle_frames

    def and_resume(connection: ServerConnection) -> None:
        handle_frames(connection)
        connection._take_turn()

    monkeypatch.setattr(ServerConnection, "_handle_frames", and_resume)
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    connection = RawConnection(ottla_broker.bootstrap)
    connection.send(b"".join(request_frame(request, 3, number, "raw") for number in range(REQUESTS)))
    for number in range(REQUESTS):
        connection.decode(ApiVersionsRequest.key, 3, connection.receive(), number)
