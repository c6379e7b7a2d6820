"""NotController: the answer to a controller request on a node that is not the active controller."""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode


class NotController(ApiError):
    """This node is not the active controller, or lost that role before the command was committed.

    The caller then asks the active controller, which knows whether the command was carried out.
    """

    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, message)
