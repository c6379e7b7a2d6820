"""The logins that brokers of the test process accept, seen from inside."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.server.security.authentication import Authentication


class Logins:
    """Each login: the connection's conversation, and the principal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._seen: list[tuple[Authentication, str]] = []
        accept = Authentication._accept

        def accepted(authentication: Authentication, end: Any) -> Any:
            found = accept(authentication, end)
            self._seen.append((authentication, str(found.principal)))
            return found

        monkeypatch.setattr(Authentication, "_accept", accepted)

    @property
    def principals(self) -> set[str]:
        return {name for _, name in self._seen}

    @property
    def connections(self) -> int:
        """How many connections have authenticated."""
        return len({id(connection) for connection, _ in self._seen})

    @property
    def again(self) -> int:
        """How often the busiest connection has authenticated after its first time."""
        connections = [connection for connection, _ in self._seen]
        return max((connections.count(each) for each in connections), default=0) - 1
