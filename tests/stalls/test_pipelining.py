"""Requests that come together on one connection: none is long, and others have their turn between them all the same."""

from pathlib import Path

from tests.stalls.measuring.measure import BUDGET_MS, MeasuredNode, best_of
from tests.support.requests.raw import request_frame

from ottla.model import limits
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest

VERSION = 4
BROKER = 4
TOGETHER = limits.IN_FLIGHT_PER_CONNECTION_MAX


def test_many_requests_that_come_together(tmp_path: Path) -> None:
    broker = DescribeConfigsRequest.Resource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    ask = DescribeConfigsRequest(resources=[broker], include_synonyms=True, include_documentation=True)
    frames = b"".join(request_frame(ask, VERSION, number, "pipe") for number in range(TOGETHER))
    with MeasuredNode(tmp_path, {"node.id": 1}) as node, node.connect() as connection:

        def describe() -> None:
            connection.send(frames)
            for _ in range(TOGETHER):
                connection.receive()

        assert best_of(lambda: node.cost(describe)).cpu_ms <= BUDGET_MS
