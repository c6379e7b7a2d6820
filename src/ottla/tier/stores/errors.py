"""What can go wrong with an object store, by what a caller can do about it.

The text of an error is one line without secrets: URLs have no query and no user, and what an HTTP server answered is
reduced to its status, code and message. An error of a library is never the cause or the context of these, because
tracebacks would print it with all that was in the request.
"""

from __future__ import annotations


class StoreError(Exception):
    """A call of an object store failed. `hint` says what an operator can do; it may be empty.

    A change that failed may have happened, and may even happen later: only `ObjectExists` and `ObjectNotFound` are
    certain.
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]} ({self.hint})" if self.hint else str(self.args[0])


class StoreUnavailable(StoreError):
    """The store did not answer, was overloaded or failed: the same call may succeed later."""


class ObjectNotFound(StoreError):
    """There is no object with this key."""


class ObjectExists(StoreError):
    """There is an object with this key already, and this call did not make it."""


class StoreDenied(StoreError):
    """The store refused the credentials, or found none, or the right to do this is missing."""


class StoreFull(StoreError):
    """There is no room, or a quota is used up."""


class StoreBroken(StoreError):
    """The call cannot succeed as it is: no such bucket, an object shorter than was said, a wrong setting."""
