"""A client without rights: the same answers as a real Kafka, for every API in every version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.requests.limited import TEXT, Sides
from tests.support.requests.one_of_each import TOPIC, one_of_each
from tests.support.requests.same import Plain, Side

from ottla.server.api.api_table import SERVED
from ottla.wire.api import API_NAMES, FIRST_OWN_KEY, request_class

# The texts of Kafka describe the request as Java shows it, so they are not compared.
NOT_COMPARED = {
    "ApiVersions",
    # Served where they are offered, and nobody needs a right for them: see ../test_telemetry.py.
    "GetTelemetrySubscriptions",
    "PushTelemetry",
}
CASES = [
    pytest.param(key, version, id=f"{API_NAMES[key]}-v{version}")
    for key, (low, high) in SERVED.items()
    if API_NAMES[key] not in NOT_COMPARED and key < FIRST_OWN_KEY
    for version in range(low, high + 1)
]


@pytest.mark.parametrize(("key", "version"), CASES)
def test_without_rights(sides: Sides, key: int, version: int) -> None:
    def script(client: Side, _: Side) -> Iterator[Plain]:
        by_id = bytes(16) if API_NAMES[key] == "Metadata" and version < 12 else client.ids[TOPIC]
        yield client.call(one_of_each(request_class(key), version, by_id), version, blank=TEXT)

    sides.same(script)
