"""Every API, asked by a client that has not logged in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.support.requests.one_of_each import one_of_each
from tests.support.requests.raw import Closed, RawConnection

from ottla.wire.api import API_NAMES, request_class
from ottla.wire.frame import request_frame
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

OF_A_LOGIN = {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}


def answered_before_login(
    connect: Callable[[], RawConnection],
    served: Mapping[int, tuple[int, int]],
    begun: SaslHandshakeRequest | None = None,
) -> list[str]:
    """Ask for every API but those of a login, each on a connection of its own, and return which ones were answered
    with anything but the end of the connection. `begun`: after this SaslHandshake.
    """
    asked = [(key, version) for key, versions in served.items() for version in sorted(set(versions))]
    return [
        f"{API_NAMES[key]} v{version}"
        for key, version in asked
        if API_NAMES[key] not in OF_A_LOGIN and not is_closed_without_an_answer(connect, key, version, begun)
    ]


def is_closed_without_an_answer(
    connect: Callable[[], RawConnection], key: int, version: int, begun: SaslHandshakeRequest | None
) -> bool:
    with connect() as connection:
        if begun is not None:
            answer: Any = connection.call(begun, 1)
            assert answer.error_code == 0
        connection.send(request_frame(one_of_each(request_class(key), version, bytes(16)), version, 4711, "stranger"))
        try:
            connection.receive_some()
        except Closed:
            return True
        return False
