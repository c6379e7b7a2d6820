"""Sessions: who has signed in, by the secret in their cookie.

Rules:
- A session ends when its user signs out, has been idle for long, or by its age. The number of sessions is bounded, of
  all users and of one: whoever signs in again and again ends sessions of that user, and not those of others.
- Its id is known to its browser alone (a cookie that scripts cannot read); forms carry another secret, its `token`.
- A session that ends says so (`ended`): its streams end with it. What its user has taken counts until it is given back.
- Without signing in there is one session for everybody who reaches the console, with a token all the same.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator

from ottla.console.access import Access
from ottla.console.security.user_amounts import UserAmounts
from ottla.model import limits
from ottla.web.password_turns import PasswordTurns

_SECRET_BYTES = 32


class ConsoleSession:
    """One user's visit. `messages` are said on the next page."""

    def __init__(self, access: Access, now_s: float) -> None:
        self.id = secrets.token_urlsafe(_SECRET_BYTES)
        self.token = secrets.token_urlsafe(_SECRET_BYTES)
        self.access = access
        self.began_s = self.seen_s = now_s
        self.ended = asyncio.Event()
        self.requests = 0  # that are being answered
        self.messages: deque[str] = deque(maxlen=limits.CONSOLE_MESSAGES_MAX)

    def is_over(self, now_s: float) -> bool:
        is_idle = not self.requests and now_s - self.seen_s > limits.CONSOLE_SESSION_IDLE_S
        return is_idle or now_s - self.began_s > limits.CONSOLE_SESSION_S


class Sessions:
    """All sessions of a console. `steady_s` is a clock that is never set."""

    def __init__(self, steady_s: Callable[[], float], everybody: Access | None = None) -> None:
        self._steady_s = steady_s
        self._by_id: dict[str, ConsoleSession] = {}
        self._everybody = None if everybody is None else ConsoleSession(everybody, steady_s())
        self.password_turns = PasswordTurns()  # of those who sign in
        self.requests = UserAmounts()  # that are being answered
        self.queries = UserAmounts()  # in SQL
        self.unsent = UserAmounts()  # bytes of files
        self._closing: set[asyncio.Task[None]] = set()

    def begin(self, access: Access) -> ConsoleSession:
        """Begin a session for a user who has signed in."""
        self.end_old()
        while len(list(self._of(access.user))) >= limits.CONSOLE_SESSIONS_PER_USER_MAX:
            self.end(self._idlest(access.user))
        while len(self._by_id) >= limits.CONSOLE_SESSIONS_MAX:
            counts = Counter(each.access.user for each in self._by_id.values())
            self.end(self._idlest(max(counts, key=lambda user: counts[user])))
        session = ConsoleSession(access, self._steady_s())
        self._by_id[session.id] = session
        return session

    def count_requests(self, session: ConsoleSession, one: int) -> None:
        """Count a request that begins (1) or ends (-1)."""
        session.requests += one
        self.requests.add(session.access.user, one)

    def _of(self, user: str) -> Iterator[ConsoleSession]:
        return (each for each in self._by_id.values() if each.access.user == user)

    def _idlest(self, user: str) -> ConsoleSession:
        """The session of a user that was idle longest. The user has one."""
        return min(self._of(user), key=lambda each: each.seen_s)

    def find(self, session_id: str | None, *, is_used: bool = True) -> ConsoleSession | None:
        """Return the session of a cookie; None if there is none (any more). A request that a page sends by itself does
        not use the session: a page that nobody looks at keeps nobody signed in.
        """
        if self._everybody is not None:
            return self._everybody
        session = self._by_id.get(session_id or "")
        if session is None:
            return None
        now_s = self._steady_s()
        if session.is_over(now_s):
            self.end(session)
            return None
        if is_used:
            session.seen_s = now_s
        return session

    def end(self, session: ConsoleSession) -> None:
        if self._by_id.pop(session.id, None) is not None:
            session.ended.set()
            self._later(session.access.close())

    def end_old(self) -> None:
        """End the sessions whose time is over."""
        now_s = self._steady_s()
        for session in [each for each in self._by_id.values() if each.is_over(now_s)]:
            self.end(session)

    async def close(self) -> None:
        for session in list(self._by_id.values()):
            self.end(session)
        if self._everybody is not None:
            self._later(self._everybody.access.close())
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
