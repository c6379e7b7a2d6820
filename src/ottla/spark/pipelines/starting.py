"""The start of a pipeline, up to its claim: if it fails, the reason is published as the status of the pipeline.

Rules:
- A run that has claimed the name publishes its own end (`run`); nothing is added to that here.
- The status of a run that is going on elsewhere is not overwritten (`--force` may have been about to replace it).
- The fields of the last status that the next run needs are kept: the number of replays, and up to which batch late
  records were sent.
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
    """A context around the start of a pipeline: a failure is published, if the broker can be reached, and raised.
    `before` is the status of the last run.
    """
    try:
        yield
    except Exception as error:
        said = str(error) if isinstance(error, PipelineError) else str(cause_of_call(error))
        with contextlib.suppress(ClientError, ApiError, OSError):
            if _publish(Board(client), identity, before, " ".join(said.split())):
                on_event({"event": "failed", "pipeline": identity.name, "error": said})
        raise


def _publish(board: Board, identity: PipelineStatus, before: PipelineStatus | None, error: str) -> bool:
    """Publish a failed start. False if another run, or the one that was started, has the name now."""
    board.ensure()
    now_ms = wall_clock_ms()
    last = board.all(now_ms).get(identity.name)
    if last is not None:
        if before is None or last.run != before.run or (last.state in LIVE and not last.is_dead_here):
            return False
        identity = replace(identity, generation=last.generation, late=last.late)
    board.publish(replace(identity, state="failed", error=error, updated_ms=now_ms))
    return True
