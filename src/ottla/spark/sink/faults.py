"""Named steps of the protocol at which a test can stop a process, in order to kill it just there.

With OTTLA_SPARK_STEPS=<directory> in the environment, a process that comes to a step looks for a file of that name in
the directory. If there is one it is armed: the process renames it to `<step>.<its pid>`, which tells the test who waits
there, and goes on only when that file is gone. Without the variable a step costs nothing.
"""

import os
import time
from enum import Enum
from pathlib import Path

VARIABLE = "OTTLA_SPARK_STEPS"
_LOOK_EVERY_S = 0.02


class FaultPoint(Enum):
    """Where something can go wrong; docs/exactly-once.md says what happens then."""

    # The driver, before the tasks.
    PREPARE_FENCED = "prepare.fenced"
    PREPARE_ROLLED = "prepare.rolled"
    PREPARE_READY = "prepare.ready"
    # A task.
    TASK_BEGUN = "task.begun"
    TASK_WRITTEN = "task.written"
    TASK_FLUSHED = "task.flushed"
    # The driver, after the tasks.
    COMMIT_BEGUN = "commit.begun"
    COMMIT_WRITTEN = "commit.written"
    COMMIT_DECIDED = "commit.decided"
    COMMIT_ONE_ENDED = "commit.one-ended"
    COMMIT_ENDED = "commit.ended"
    COMMIT_DONE = "commit.done"


def reach(step: FaultPoint) -> None:
    """The process is here; see above."""
    directory = os.environ.get(VARIABLE)
    if not directory:
        return
    armed = Path(directory, step.value)
    waiting = armed.with_name(f"{step.value}.{os.getpid()}")
    try:
        armed.rename(waiting)
    except FileNotFoundError:
        return
    while waiting.exists():
        time.sleep(_LOOK_EVERY_S)
