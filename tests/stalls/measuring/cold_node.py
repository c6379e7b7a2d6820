"""A program: a node in a fresh process, and what the first coordinator and the first contract take of its loop.

In a process that has run other tests everything is imported. `tests/stalls/test_first_use.py` runs this one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.server.talk import create, produce
from tests.stalls.measuring.measure import MeasuredNode
from tests.support.waiting import until

from ottla.records.build import build_batch
from ottla.wire.message import Request
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest


def main(data: Path) -> None:
    costs: dict[str, float] = {}
    with MeasuredNode(data, {"offsets.topic.num.partitions": 50}) as node, node.connect() as connection:
        create(connection, "warm")
        assert produce(connection, "warm", build_batch([(None, b"x")]))[0] == 0

        def found(request: Request, version: int) -> None:
            until(lambda: connection.call(request, version), lambda answer: not told(answer))

        def told(answer: Any) -> int:
            return int(answer.coordinators[0].error_code)

        for name, kind in (("group", 0), ("transaction", 1)):
            find = FindCoordinatorRequest(key_type=kind, coordinator_keys=["k"])
            costs[name] = node.cost(lambda find=find: found(find, 4)).cpu_ms
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        costs["heartbeat"] = node.cost(lambda: connection.call(beat, 4)).cpu_ms

        def contract() -> None:
            create(
                connection, "orders", **{"ottla.schema.validation": "id", "ottla.schema.validation.action": "reject"}
            )
            produce(connection, "orders", build_batch([(None, b"no schema")]))

        costs["contract"] = node.cost(contract).cpu_ms
    print(json.dumps(costs))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
