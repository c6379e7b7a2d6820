"""Work in steps: the caller, on the loop or in a worker, can do other things between two of them.

A step is short. The module of the work says what a step must not change, and where it may be run.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.log.files.disk import StorageError
from ottla.model.errors import ApiError, ErrorCode


class Steps:
    """Work that `steps` does, yielding after each. When it is `done`, it has either a `refusal` or a result.

    Work that is `at_rest` holds no large data: other work may run before its next step.
    """

    __slots__ = ("_steps", "at_rest", "done", "refusal")

    def __init__(self, steps: Iterator[None]) -> None:
        self._steps = steps
        self.at_rest = False
        self.done = False
        self.refusal: ApiError | None = None

    def begin(self) -> None:
        """Prepare the work; called before the first step, always on the loop. Most work needs no preparation."""

    def step(self) -> bool:
        """Take one step; return whether the work is done."""
        if not self.done:
            try:
                next(self._steps)
            except StopIteration:
                self.done = True
            except ApiError as error:
                # The traceback would keep the decompressed data alive.
                self.refusal, self.done = error.with_traceback(None), True
                error.__context__ = None
            except StorageError as error:
                self.refusal, self.done = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)), True
        return self.done

    def finish(self) -> None:
        """Take all remaining steps."""
        while not self.step():
            pass
