"""What was typed into a form that is shown again, because something in it is wrong.

Rules:
- What is wrong is said above the form, and the field that is meant is marked, if it is known.
- The status of the page is that of the error.
- A password is not sent back: it has to be typed again.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.console.call import PageCall
from ottla.console.failures import failed_notice, failure_of
from ottla.console.html import NOTHING
from ottla.console.refusals import WrongInput


class TypedForm:
    """The fields of a form that was sent, and its `error`; without one, `given` is empty before anything was typed."""

    def __init__(self, call: PageCall, error: Exception | None = None, given: Mapping[str, str] | None = None) -> None:
        self._given = call.form if given is None else given
        self.status, self.said, self._wrong = 200, NOTHING, ""
        if error is not None:
            self.status, sentence, hint = failure_of(error, call)
            self.said = failed_notice(sentence, hint)
            self._wrong = error.field if isinstance(error, WrongInput) else ""

    def text(self, name: str, default: str) -> str:
        """What was typed in a field; the default before anything was."""
        return self._given.get(name, default)

    def is_checked(self, name: str, default: bool) -> bool:
        """A box that is not checked is not sent."""
        return name in self._given if self._given else default

    def is_wrong(self, name: str) -> bool:
        return bool(name) and name == self._wrong
