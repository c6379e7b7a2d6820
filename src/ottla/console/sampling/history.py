"""The history of a cluster for one user: a task looks at it while somebody looks at a page, and keeps some minutes.

Rules:
- `look` says that somebody looks, and starts the task; it ends by itself when nobody has looked for a while.
- Sampling takes no more than a part of the time: the larger the cluster, the rarer the samples.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from functools import partial

from ottla.client.admin import Admin
from ottla.console.access import Access
from ottla.console.sampling.changes import ClusterChange
from ottla.console.sampling.moment import ClusterMoment
from ottla.console.sampling.survey import ClusterSurvey, Surveyed
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.operations.failures import NO_ANSWER
from ottla.operations.sampling.sample import TopSample

log = logging.getLogger(__name__)

_FIRST_S = 8.0


class ClusterHistory:
    """`last` is the last look, and `before` the sample of the look before it."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._survey: ClusterSurvey | None = None
        self.moments: deque[ClusterMoment] = deque(maxlen=limits.CONSOLE_SAMPLES)
        self.changes: deque[ClusterChange] = deque(maxlen=limits.CONSOLE_CHANGES)
        self.before: TopSample | None = None
        self.last: Surveyed | None = None
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None
        self._taken = asyncio.Event()
        self._looked_s = 0.0

    @classmethod
    def of(cls, access: Access) -> ClusterHistory:
        """The history that is kept for this user."""
        return access.kept(cls, cls, cls.close)

    async def look(self) -> None:
        """Note that somebody looks, and wait for the first sample. Raises if the cluster cannot be asked."""
        self._looked_s = time.monotonic()
        if not self.is_sampling:
            self._taken.clear()
            self._failure = None  # that of a run which has ended is told no more
            self._task = asyncio.get_running_loop().create_task(self._run())
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_S):
                await self._taken.wait()
        if self._failure is not None:
            raise _anew(self._failure) from self._failure

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    @property
    def now(self) -> TopSample | None:
        """The last sample."""
        return None if self.last is None else self.last.now

    @property
    def missing(self) -> tuple[str, ...]:
        """What could not be read."""
        return () if self.last is None else self.last.missing

    @property
    def is_sampling(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def changed_ms(self) -> int:
        """When something changed last that may be good or bad for the health of the cluster."""
        return next((each.time_ms for each in self.changes if each.mood != "plain"), 0)

    @property
    def has_metrics(self) -> bool:
        """Whether a node tells its metrics."""
        return self.now is not None and bool(self.now.metrics)

    async def _run(self) -> None:
        self.before = self.last = self._survey = None  # what was long ago is no basis for rates
        if self.moments:
            self.moments.append(ClusterMoment(asyncio.get_running_loop().time()))
        count = 0
        while time.monotonic() - self._looked_s < limits.CONSOLE_UNWATCHED_S:
            began_s = time.monotonic()
            try:
                is_slow = count % limits.CONSOLE_SLOW_EVERY == 0
                self._keep(await self._access.aside(partial(self._surveyed, is_slow=is_slow)))
                self._failure = None
            except (ApiError, *NO_ANSWER) as error:
                self._failure = error
            except Exception as error:
                log.error("sampling the cluster failed", exc_info=error)
                self._failure = error
            self._taken.set()
            count += 1
            took_s = time.monotonic() - began_s
            await asyncio.sleep(max(limits.CONSOLE_SAMPLE_S - took_s, limits.CONSOLE_SAMPLING_PART * took_s, 1.0))

    async def _surveyed(self, admin: Admin, *, is_slow: bool) -> Surveyed:
        """Done beside this loop."""
        if self._survey is None:
            self._survey = ClusterSurvey(admin, self._access.client_options.known_security)
        return await self._survey.look(is_slow=is_slow)

    def _keep(self, found: Surveyed) -> None:
        self.before, self.last = self.now, found
        self.changes.extendleft(found.changes)
        for moment in found.moments:
            self.moments.append(moment)
            oldest_s = moment.at_s - limits.CONSOLE_SAMPLES * limits.CONSOLE_SAMPLE_S
            while self.moments[0].at_s < oldest_s:
                self.moments.popleft()


def _anew(error: Exception) -> Exception:
    """The same error as an object of its own: raised for each visitor, one object would gather all their tracebacks."""
    made = type(error).__new__(type(error), *error.args)
    vars(made).update(vars(error))
    return made
