"""Share groups of very many partitions: nobody else waits while their states are begun."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from tests.server.share_talk import SMALL
from tests.server.talk import create, eventually
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of

from ottla.model.errors import ErrorCode
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.shares.share_group_heartbeat import ShareGroupHeartbeatRequest

WIDE = 10_000


def test_the_first_member_of_a_group_of_very_many_partitions(tmp_path: Path) -> None:
    numbers = count()
    with MeasuredNode(tmp_path, SMALL) as node, node.connect() as connection:
        topic_id = create(connection, "wide", WIDE)

        def heartbeat(group: str, epoch: int) -> Any:
            request = ShareGroupHeartbeatRequest(
                group_id=group, member_id="m", member_epoch=epoch, subscribed_topic_names=["wide"]
            )
            return connection.call(request, 1)

        def join(group: str) -> None:
            epoch = 0

            def is_assigned() -> bool:
                nonlocal epoch
                answer = heartbeat(group, epoch)
                assert answer.error_code == ErrorCode.NONE
                epoch = answer.member_epoch
                if answer.assignment is None:
                    return False
                found = {each.topic_id: len(each.partitions) for each in answer.assignment.topic_partitions}
                return found.get(topic_id) == WIDE

            eventually(is_assigned, "all partitions")

        def attempt() -> Callback:
            group = f"g{next(numbers)}"
            answer: Any = connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 6)
            assert answer.coordinators[0].error_code == ErrorCode.NONE
            return node.cost(lambda: join(group))

        worst = best_of(attempt)
    assert worst.cpu_ms <= BUDGET_MS, worst
