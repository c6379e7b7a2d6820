"""TokenIndex: finds delegation tokens by their secret halves, and counts those of each owner.

The journal has no secret halves, and the state does not know the key that they follow from. So the tokens that were
added are signed when somebody first asks for one by its secret half, each of them once: a wrong one costs one look-up.
"""

from __future__ import annotations

from ottla.machine.stepped import Steps
from ottla.model.limits import TOKENS_PER_SLICE
from ottla.security.delegation_tokens import token_hmac


class TokenIndex:
    """The ids of the tokens in a state."""

    def __init__(self) -> None:
        self._secret_key = ""
        self._owners: dict[str, str] = {}  # by token
        self._counts: dict[str, int] = {}  # tokens by owner
        self._unsigned: dict[str, None] = {}  # tokens, in order
        self._secrets: dict[str, bytes] = {}  # by token
        self._ids: dict[bytes, str] = {}  # tokens by secret half

    def copy(self) -> TokenIndex:
        new = TokenIndex()
        new._secret_key = self._secret_key
        for name in ("_owners", "_counts", "_unsigned", "_secrets", "_ids"):
            setattr(new, name, getattr(self, name).copy())
        return new

    def put(self, token_id: str, owner: str) -> None:
        """Add a token, or change its owner."""
        known = self._owners.get(token_id)
        if known is None:
            self._unsigned[token_id] = None
        elif known != owner:
            self._uncount(known)
        if known != owner:
            self._owners[token_id] = owner
            self._counts[owner] = self.count(owner) + 1

    def remove(self, token_id: str) -> None:
        """Forget a token, if it is known."""
        owner = self._owners.pop(token_id, None)
        if owner is not None:
            self._uncount(owner)
        self._unsigned.pop(token_id, None)
        secret = self._secrets.pop(token_id, None)
        if secret is not None:
            del self._ids[secret]

    def count(self, owner: str) -> int:
        """Return how many tokens an owner has, expired ones included."""
        return self._counts.get(owner, 0)

    def find(self, secret: bytes, secret_key: str) -> Steps[str | None]:
        """Return the id of the token with this secret half, in steps if many were added since the last search."""
        if secret_key != self._secret_key:
            self._secret_key = secret_key
            self._unsigned = dict.fromkeys(self._owners)
            self._secrets.clear()
            self._ids.clear()
        signed = 0
        while self._unsigned:
            token_id, _ = self._unsigned.popitem()
            self._secrets[token_id] = token_hmac(secret_key, token_id)
            self._ids[self._secrets[token_id]] = token_id
            signed += 1
            if signed % TOKENS_PER_SLICE == 0:
                yield
        return self._ids.get(secret)

    def _uncount(self, owner: str) -> None:
        self._counts[owner] -= 1
        if not self._counts[owner]:
            del self._counts[owner]
