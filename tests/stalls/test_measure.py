"""The measuring tool finds what it is meant to find."""

import asyncio
import time
from pathlib import Path

from tests.stalls.measuring.measure import MeasuredNode, best_of, recorded

from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest


def compute(for_ms: float) -> None:
    until_s = time.thread_time() + for_ms / 1000
    while time.thread_time() < until_s:
        pass


def test_cpu_time_by_callback_and_coroutine() -> None:
    async def dear() -> None:
        await asyncio.sleep(0)
        compute(30)

    async def run() -> None:
        asyncio.get_running_loop().call_soon(compute, 10)
        time.sleep(0.1)  # noqa: ASYNC251 - takes no CPU
        await asyncio.create_task(dear())

    with recorded() as recording:
        asyncio.run(run())
    assert 30 <= recording.worst().cpu_ms < 90
    assert "dear" in recording.worst().name
    assert any(10 <= each.cpu_ms < 30 and "compute" in each.name for each in recording.callbacks)


def test_a_node_is_measured(tmp_path: Path) -> None:
    with MeasuredNode(tmp_path) as node, node.connect() as client:
        request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        worst = best_of(lambda: node.cost(lambda: client.call(request, 3)))
    assert worst.cpu_ms < 50
