"""The queue of BatchLooks goes on, whatever becomes of one look: a failure is logged, and the next one has its turn."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.log.steps import Steps
from ottla.model.errors import ErrorCode
from ottla.server.loop.later import Later, gather
from ottla.server.storage.batch_looks import BatchLooks
from ottla.sim.world.loop import SimLoop


class Work(Steps):
    """So many steps, with an error in one of them (counted down) or in `begin`, if anywhere."""

    def __init__(self, steps: int, fails_at: int | None = None, *, rests: bool = False) -> None:
        super().__init__(self._work(steps))
        self._fails_at = fails_at
        self.at_rest = rests
        self.steps = 0

    def begin(self) -> None:
        if self._fails_at == 0:
            raise RuntimeError("oh")

    def _work(self, steps: int) -> Iterator[None]:
        for left in range(steps, 0, -1):
            if left == self._fails_at:
                raise RuntimeError("oh")
            self.steps += 1
            yield


def fail(*_: object) -> None:
    raise RuntimeError("oh")


@pytest.fixture
def loop() -> Any:
    made = SimLoop(random.Random(1))
    yield made
    made.close()
    assert not made.errors


def run(loop: SimLoop) -> None:
    loop.call_later(60, loop.stop)
    loop.run_forever()


@pytest.mark.parametrize("quiet", [fail, lambda: None])
@pytest.mark.parametrize("first_fails_at", [None, 0, 1, 2])
def test_the_next_has_its_turn_whatever_failed(
    loop: SimLoop, quiet: Callable[[], None], first_fails_at: int | None
) -> None:
    looks = BatchLooks(loop, None)
    first, second = Work(2, first_fails_at), Work(2)
    told: list[Work] = []
    looks.search(first, told.append)
    looks.search(second, told.append)
    called: list[int] = []
    looks.when_quiet(quiet)
    looks.when_quiet(lambda: called.append(1))
    run(loop)
    assert told == [first, second]
    assert called == [1]
    refusals = [work.refusal and work.refusal.code for work in told]
    assert refusals == [None if first_fails_at is None else ErrorCode.UNKNOWN_SERVER_ERROR, None]


class Client:
    def __init__(self) -> None:
        self.left = False
        self.has_left = lambda: self.left

    def leave(self) -> None:
        self.left = True


@pytest.mark.parametrize("rests", [True, False])
def test_nobody_waits_for_all_the_work_of_another(loop: SimLoop, rests: bool) -> None:
    looks, one = BatchLooks(loop, None), Client()
    many, few = [Work(100, rests=rests) for _ in range(5)], Work(3)
    done_then: list[int] = []
    for work in many:
        looks.search(work, lambda _: None, one)
    looks.search(few, lambda _: done_then.append(sum(work.steps for work in many)), Client())
    run(loop)
    assert [work.steps for work in many] == [100] * 5
    # Work that does not rest holds memory: there is one such piece at a time.
    assert done_then == [1 if rests else 100]


def test_work_of_a_client_that_has_left_ends_before_its_next_step(loop: SimLoop) -> None:
    looks, one = BatchLooks(loop, None), Client()
    unwanted, also_unwanted, wanted = Work(1_000), Work(1_000), Work(2)
    told: list[Work] = []
    looks.search(unwanted, told.append, one)
    looks.search(also_unwanted, told.append, one)
    looks.search(wanted, told.append, Client())
    looks.when_quiet(one.leave)  # after the first step
    run(loop)
    assert told == [unwanted, wanted, also_unwanted]
    assert [work.steps for work in told] == [1, 2, 0]
    assert [work.refusal is None for work in told] == [False, True, False]


def test_what_is_done_at_once_may_fail_without_harm_to_the_caller(loop: SimLoop) -> None:
    BatchLooks(loop, None).when_quiet(fail)


def test_an_answer_that_cannot_be_made_of_another_fails_and_holds_up_nobody() -> None:
    sound: Later[int] = Later()
    broken: Later[int] = Later()
    answers = gather([sound.map(lambda value: value + 1), broken.map(fail)])
    broken.set(1)
    sound.set(1)
    assert answers.failed


def test_an_answer_that_failed_is_not_mistaken_for_one_that_is_there() -> None:
    given: Later[int] = Later()
    given.set(1)
    failed = given.map(fail)
    assert failed.soonest() is failed
