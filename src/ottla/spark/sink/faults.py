"""Named steps of the protocol at which a test can stop a process, in order to kill it there.

With OTTLA_SPARK_STEPS=<directory> in the environment, a process that reaches a step looks for a file with the name of
the step in the directory. If there is one, the step is armed: the process renames the file to `<step>.<pid>`, which
tells the test which process waits there, and continues only when that file is gone. Without the variable a step does
nothing.
"""

import os
import time
from enum import Enum
from pathlib import Path

VARIABLE = "OTTLA_SPARK_STEPS"
_LOOK_EVERY_S = 0.02


class FaultPoint(Enum):
    """The steps at which a process may be killed; docs/exactly-once.md says what happens then."""

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
    """Note that the process has reached this step, and wait there if the step is armed."""
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
