"""Moves of replicas that the console carries out for a user, in the background, and the plans that are kept for that.

Rules:
- What was shown is what is done: a plan is kept when it is shown, and carried out by its number, for some minutes.
- One plan at a time. It goes on when the visitor leaves the page, and ends with the session: moves that have begun go
  on by themselves, the others do not begin.
- It has a client of its own, so that its throttle can be taken off when the session ends. The end of the session waits
  for that.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.cluster.balance.loads import BalancePlan, ReplicaMove
from ottla.console.access import Access
from ottla.console.refusals import WrongInput
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.moves import AT_ONCE, Mover, Progress
from ottla.operations.cluster.plan import under_way
from ottla.operations.cluster.throttle import throttled
from ottla.operations.cluster.view import look
from ottla.operations.errors import CommandError
from ottla.operations.failures import message_of

log = logging.getLogger(__name__)

_WAY_OFF = "the page Moves takes it off"


class KeptPlan(NamedTuple):
    """A plan that was shown: its `moves` may be more than the plan's, as elections of leaders are."""

    number: int
    title: str
    plan: BalancePlan
    moves: tuple[ReplicaMove, ...]
    made_s: float


class ReplicaMoves:
    """The plans of one user, and the one that is carried out; `told` has what is to be said about it."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._plans: deque[KeptPlan] = deque(maxlen=limits.CONSOLE_PLANS)
        self._made = 0
        self._task: asyncio.Task[None] | None = None
        self.title = ""
        self.progress: Progress | None = None
        self.failed: dict[TopicPartition, str] = {}
        self.told: list[str] = []
        self.failure = ""
        self.began_s = 0.0
        self.is_cancelled = False

    @classmethod
    def of(cls, access: Access) -> ReplicaMoves:
        """The moves that are kept for this user."""
        return access.kept(cls, cls, cls.stopped)

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def keep(self, title: str, plan: BalancePlan, moves: Sequence[ReplicaMove]) -> KeptPlan:
        """Keep a plan that is shown."""
        self._made += 1
        self._plans.append(KeptPlan(self._made, title, plan, tuple(moves), time.monotonic()))
        return self._plans[-1]

    def plan(self, number: int) -> KeptPlan:
        """The plan with this number. Raises WrongInput if it is too old."""
        for each in self._plans:
            if each.number == number and time.monotonic() - each.made_s < limits.CONSOLE_PLAN_S:
                return each
        raise WrongInput("this plan is too old: the cluster may be another one by now", "make it anew")

    def begin(self, plan: KeptPlan, rate: int | None, at_once: int = AT_ONCE) -> None:
        """Begin to carry out a plan. Raises WrongInput while another one runs."""
        if self.is_running:
            raise WrongInput(f"{self.title} is under way", "wait for its end, or cancel it")
        self.title, self.began_s, self.is_cancelled = plan.title, time.monotonic(), False
        self.progress, self.failed, self.told, self.failure = None, {}, [], ""
        self._plans.remove(plan)
        self._task = asyncio.get_running_loop().create_task(self._run(plan.moves, rate, at_once))

    def stop(self) -> None:
        """Begin no more moves; those under way go on. A plan that ends already is left to take its throttle off."""
        if self.is_running and self._task is not None and not self.is_cancelled:
            self.is_cancelled = True
            self._task.cancel()

    async def stopped(self) -> None:
        """Stop, and wait for the end."""
        self.stop()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self, moves: Sequence[ReplicaMove], rate: int | None, at_once: int) -> None:
        def on_progress(progress: Progress) -> None:
            self.progress = progress

        try:
            async with Admin(self._access.client_options) as admin:
                begun = under_way(await look(admin))
                async with throttled(admin, (*begun, *moves), rate, self.told.append, _WAY_OFF):
                    mover = Mover(admin, moves, begun, at_once=at_once, on_progress=on_progress)
                    self.failed = mover.failed
                    await mover.run()
        except (ClientError, ApiError, CommandError, OSError, TimeoutError) as error:
            self.failure = message_of(error)
        except Exception as error:
            log.error("%s failed", self.title, exc_info=error)
            self.failure = "an error in the console; its log says more"
