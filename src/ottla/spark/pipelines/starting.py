"""The start of a pipeline, up to its claim: who asks for its status afterwards learns why it failed.

Rules:
- A run that has claimed the name tells its own end (`run`); nothing is added to that.
- A run that is going on elsewhere keeps its status (`--force` may have been about to replace it).
- What the next run needs of the last one, replays counted and late records seen to, stays.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ClientError
from ottla.client.options import wall_clock_ms
from ottla.model.errors import ApiError
from ottla.spark.pipelines.causes import cause_of_call
from ottla.spark.pipelines.definition import PipelineError
from ottla.spark.pipelines.status import LIVE, Board, PipelineStatus


@contextlib.contextmanager
def starting(
    client: Blocking,
    identity: PipelineStatus,
    before: PipelineStatus | None,
    on_event: Callable[[dict[str, Any]], None],
) -> Iterator[None]:
    """Around a start: a failure is published, if the broker can be reached, and raised. `before` is the last run."""
    try:
        yield
    except Exception as error:
        said = str(error) if isinstance(error, PipelineError) else str(cause_of_call(error))
        with contextlib.suppress(ClientError, ApiError, OSError):
            if _publish(Board(client), identity, before, " ".join(said.split())):
                on_event({"event": "failed", "pipeline": identity.name, "error": said})
        raise


def _publish(board: Board, identity: PipelineStatus, before: PipelineStatus | None, error: str) -> bool:
    """False if another run, or the one that was started, has the name now."""
    board.ensure()
    now_ms = wall_clock_ms()
    last = board.all(now_ms).get(identity.name)
    if last is not None:
        if before is None or last.run != before.run or (last.state in LIVE and not last.is_dead_here):
            return False
        identity = replace(identity, generation=last.generation, late=last.late)
    board.publish(replace(identity, state="failed", error=error, updated_ms=now_ms))
    return True
