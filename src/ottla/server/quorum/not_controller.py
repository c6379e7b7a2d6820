"""NotController: the outcome of a request for the active controller at a node that is not it."""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode


class NotController(ApiError):
    """This node is not the active controller, or lost that role before the command was committed.

    Whoever asked finds the active controller and asks that one, which knows whether the command was carried out.
    """

    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, message)
