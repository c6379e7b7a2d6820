"""A controller of many partitions: its work grows with what it concerns, counted in calls and bytes, not in time."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from bench.controller_scale import Controller, broker, built, take_over

from ottla.cluster.commands.create_topics import CreateTopics, TopicToCreate
from ottla.cluster.commands.fence import FenceBroker
from ottla.cluster.commands.start import StartBroker
from ottla.cluster.snapshot import snapshot
from ottla.cluster.state import ClusterState

SMALL, LARGE = 10_000, 20_000
# Of a figure that is proportional to the partitions, the larger is twice the smaller; a little is the same for both.
LINEAR = 2.1
FEW = 99


@pytest.fixture(scope="module")
def controllers() -> tuple[Controller, Controller]:
    """Brokers 1 to 10 have everything; some partitions were made on 99 alone."""
    both = built(SMALL), built(LARGE)
    for controller in both:
        controller.submit(StartBroker(broker(FEW), clean=True))
        assignments = tuple((index, (FEW, 1)) for index in range(50))
        controller.submit(CreateTopics((TopicToCreate("few", assignments=assignments),)))
    return both


def calls(work: Callable[[], Any]) -> int:
    """How many functions were called."""
    count = 0

    def see(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def allocated(work: Callable[[], Any]) -> int:
    """The bytes of what it made."""
    tracemalloc.start()
    try:
        made = work()
        size_bytes = tracemalloc.get_traced_memory()[0]
        del made
        return size_bytes
    finally:
        tracemalloc.stop()


def fence(controller: Controller, id: int) -> Callable[[], int]:
    active = take_over(controller.state)
    return lambda: active.submit(FenceBroker(id, active.state.brokers[id].epoch))


def test_fencing_costs_what_the_broker_holds(controllers: tuple[Controller, Controller]) -> None:
    small, large = controllers
    for controller in controllers:
        fence(controller, FEW)()  # what is made on first use is there from now on
    few = [calls(fence(controller, FEW)) for controller in (small, large)]
    assert few[0] == few[1]
    many = [calls(fence(controller, 2)) for controller in (small, large)]
    assert many[0] > 20 * few[0] and many[1] <= LINEAR * many[0]


def test_taking_over_copies_lists_and_not_partitions(controllers: tuple[Controller, Controller]) -> None:
    sizes = [allocated(controller.state.copy) for controller in controllers]
    assert sizes[1] <= LINEAR * sizes[0]
    assert sizes[1] / LARGE < 20  # bytes per partition: a place in a list and some bits
    made = [calls(lambda controller=controller: take_over(controller.state)) for controller in controllers]  # type: ignore[misc]
    assert made[1] <= LINEAR * made[0] and made[1] < LARGE / 4


def test_the_state_is_small(controllers: tuple[Controller, Controller]) -> None:
    def restored(state: ClusterState) -> Callable[[], ClusterState]:
        records = [entry.record for entry in snapshot(state)]

        def work() -> ClusterState:
            new = ClusterState()
            for record in records:
                new.apply(record)
            return new

        return work

    sizes = [allocated(restored(controller.state)) for controller in controllers]
    assert sizes[1] <= LINEAR * sizes[0]
    assert sizes[1] / LARGE < 250  # bytes per partition, replicated three times
