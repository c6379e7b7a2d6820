"""The health of a cluster for one user: what `ottla doctor` finds, looked at anew while somebody looks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from ottla.client.admin import Admin
from ottla.console.access import Access
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.operations.doctor.cluster.reading import read_cluster
from ottla.operations.doctor.examination import Examination
from ottla.operations.doctor.subjects import examine_cluster
from ottla.operations.failures import NO_ANSWER, message_of
from ottla.operations.threads import BlockingWork, in_thread

log = logging.getLogger(__name__)

_SAMPLE_S = 2.0
_WAIT_S = 1.0  # an answer that comes at once is waited for


class ClusterHealth:
    """`examination` is the last one, `at_s` its time by a steady clock; `failure` says why there is none."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self.examination: Examination | None = None
        self.at_s = 0.0
        self.failure = ""
        self._took_s = 0.0
        self._began_ms = 0
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, access: Access) -> ClusterHealth:
        """The health that is kept for this user."""
        return access.kept(cls, cls, cls.close)

    async def look(self, *, anew: bool = False, changed_ms: int = 0) -> None:
        """Note that somebody looks; examine the cluster if that was long ago, if something has changed since then, or
        `anew`. It goes on in the background, and takes no more than a part of the time.
        """
        pause_s = limits.CONSOLE_SAMPLING_PART * self._took_s
        if changed_ms < self._began_ms:
            pause_s = max(limits.CONSOLE_EXAMINE_S, pause_s)
        is_old = self.at_s == 0.0 or time.monotonic() - self.at_s > pause_s
        if (is_old or anew) and not self.is_under_way:
            self._task = asyncio.get_running_loop().create_task(self._examine())
        if self._task is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    await asyncio.shield(self._task)

    @property
    def is_under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.at_s

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _examine(self) -> None:
        began_s, self._began_ms = time.monotonic(), round(time.time() * 1000)
        registry = self._access.registry
        subjects = None if registry is None else registry.subjects
        try:
            examination = await self._access.aside(lambda admin: _examined(admin, subjects))
        except (ApiError, *NO_ANSWER) as error:
            self.failure = message_of(error)
        except Exception as error:
            log.error("examining the cluster failed", exc_info=error)
            self.failure = "an error in the console; its log says more"
        else:
            self.examination, self.failure = examination, ""
        self.at_s = time.monotonic()
        self._took_s = self.at_s - began_s


async def _examined(admin: Admin, subjects: Callable[[], list[str]] | None) -> Examination:
    """Done beside the loop that serves pages."""
    seen = await read_cluster(admin, _SAMPLE_S, subjects, lambda _: None, log.debug)
    examination = Examination()
    await in_thread(BlockingWork.examining, examine_cluster, examination, seen)
    return examination
