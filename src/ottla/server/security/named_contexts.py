"""NamedContexts: the TLS contexts of one listener, one per certificate, of which a client gets the one that it names.

A client names the host that it wants to reach (SNI) in its first message. A client that names none, or an unknown one,
gets the first certificate, as if there were no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from ssl import SSLContext, SSLObject


class NamedContexts:
    def __init__(self, contexts: Sequence[tuple[Sequence[str], SSLContext]]) -> None:
        """Take the contexts with the names that their certificates are for, in lower case, the default first. If two
        have the same name, the first is used.
        """
        self.default = contexts[0][1]
        self._by_name: dict[str, SSLContext] = {}
        for names, context in contexts:
            for name in names:
                self._by_name.setdefault(name, context)
        if len(contexts) > 1:
            self.default.sni_callback = self._choose

    def chosen(self, name: str | None) -> SSLContext:
        """Return the context for the name that a client asks for: of that name, or else of `*` in place of its first
        part.
        """
        asked = (name or "").lower().rstrip(".")
        found = self._by_name.get(asked) or self._by_name.get("*." + asked.partition(".")[2])
        return found or self.default

    def _choose(self, connection: SSLObject, name: str | None, context: SSLContext) -> None:
        chosen = self.chosen(name)
        if chosen is not context:
            connection.context = chosen
