"""What is wrong with a request: with what a user gave, or with the request itself. Each says it in one sentence."""

from __future__ import annotations


class WrongInput(Exception):
    """What a user gave is wrong; the message says what, and the hint what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class RefusedRequest(Exception):
    """A request that does not pass the gate; `status` is that of its answer."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint


class SignInFirst(Exception):
    """The page is for users who have signed in."""
