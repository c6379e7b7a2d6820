"""What is wrong with a request: with what a user gave, or with the request itself. Each says it in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.operations.errors import CommandError


class WrongInput(Exception):
    """What a user gave is wrong; the message says what, the hint what to do, and `field` is that of the form, if it is
    known.
    """

    def __init__(self, message: str, hint: str = "", *, field: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.field = field


@contextmanager
def typed_in(field: str) -> Iterator[None]:
    """A context in which what is wrong is wrong in this field of the form: a ValueError or CommandError becomes
    WrongInput.
    """
    try:
        yield
    except CommandError as error:
        raise WrongInput(str(error), error.hint or "", field=field) from None
    except ValueError as error:
        raise WrongInput(str(error), field=field) from None


class RefusedRequest(Exception):
    """A request that does not pass the gate; `status` is that of its answer."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint


class SignInFirst(Exception):
    """The page is for users who have signed in."""
