"""Work in steps: whoever does it, on the loop or in a worker, can do other things between two of them.

A step is short. What it must not change, and where it may be done, its own module says.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.log.files.disk import StorageError
from ottla.model.errors import ApiError, ErrorCode


class Steps:
    """`steps` yields after each. When it is `done`, there is a `refusal` or what the work was for.

    Work that is `at_rest` holds nothing large: others may have their turns before its next step.
    """

    __slots__ = ("_steps", "at_rest", "done", "refusal")

    def __init__(self, steps: Iterator[None]) -> None:
        self._steps = steps
        self.at_rest = False
        self.done = False
        self.refusal: ApiError | None = None

    def begin(self) -> None:
        """Before the first step, and on the loop wherever the others are done. Most work needs nothing of the kind."""

    def step(self) -> bool:
        """Goes on a bit; whether that was all."""
        if not self.done:
            try:
                next(self._steps)
            except StopIteration:
                self.done = True
            except ApiError as error:
                # Its traceback would keep what was unpacked.
                self.refusal, self.done = error.with_traceback(None), True
                error.__context__ = None
            except StorageError as error:
                self.refusal, self.done = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)), True
        return self.done

    def finish(self) -> None:
        """All steps that are left."""
        while not self.step():
            pass
