"""PageCall: one request as a handler sees it: who asks, for what, with which words."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from ottla.client.admin import Admin
from ottla.client.registry import SchemaRegistry
from ottla.console.access import Access
from ottla.console.html import path_to
from ottla.console.options import ConsoleOptions
from ottla.console.refusals import RefusedRequest, WrongInput
from ottla.console.security.sessions import ConsoleSession, Sessions
from ottla.console.security.user_amounts import TakenAmount
from ottla.model import limits


@dataclass(frozen=True, slots=True)
class PageCall:
    """`path` is as it was sent, percent-encoded. `params` are its named segments, `query` and `form` the first value of
    each field; `lists` has all values of the form's fields.
    """

    path: str
    options: ConsoleOptions
    sessions: Sessions
    session: ConsoleSession | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    host: str = "?"  # of the client
    theme: str = ""  # `light` or `dark`; empty: what the browser says
    sent: AsyncExitStack = field(default_factory=AsyncExitStack)  # what is closed when the answer has been sent

    @property
    def access(self) -> Access:
        assert self.session is not None, "only routes that are open have no session"
        return self.session.access

    @property
    def user(self) -> str:
        return self.access.user

    @property
    def admin(self) -> Admin:
        return self.access.admin

    @property
    def registry(self) -> SchemaRegistry:
        """The schema registry. Raises WrongInput if the console knows none."""
        if self.access.registry is None:
            raise WrongInput("no schema registry is known", "`ottla console --registry URL` names one")
        return self.access.registry

    @property
    def may_change(self) -> bool:
        """Whether forms that change the cluster are shown."""
        return not self.options.read_only

    def unsent(self, size: int) -> TakenAmount:
        """Take room for a file until it has been sent. Raises RefusedRequest if too much is unsent."""
        unsent = self.sessions.unsent
        for taken, most in (
            (unsent.of(self.user), limits.CONSOLE_UNSENT_USER_BYTES_MAX),
            (unsent.of_all, limits.CONSOLE_UNSENT_BYTES_MAX),
        ):
            if taken and taken + size > most:
                raise RefusedRequest(503, "too many files are being sent", "try again when others have been received")
        room = unsent.take(self.user, size)
        self.sent.callback(room.give_back)
        return room

    def number(self, name: str, default: int | None = None, *, least: int = 0, most: int = 2**63 - 1) -> int:
        """A number of the form or the query. Raises WrongInput if it is none, or out of bounds."""
        text = (self.form.get(name) or self.query.get(name) or "").strip()
        if not text and default is not None:
            return default
        try:
            value = int(text)
        except ValueError:
            raise WrongInput(f"{name.replace('_', ' ')} is a number, not {text[:40]!r}", field=name) from None
        if not least <= value <= most:
            said = f"{name.replace('_', ' ')} is a number from {least} to {most}, not {text[:40]}"
            raise WrongInput(said, field=name)
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A text of the form or the query, without blanks around it. Raises WrongInput if it is missing."""
        given = (self.form.get(name) or self.query.get(name) or "").strip()
        if not given and default is None:
            raise WrongInput(f"{name.replace('_', ' ')} is missing", field=name)
        return given or (default or "")

    def here(self, **query: str | int | None) -> str:
        """The address of this page with other words in its query; those that are None are left out."""
        return "/" + self.path.strip("/") + path_to(**{**self.query, **query}).removeprefix("/")
