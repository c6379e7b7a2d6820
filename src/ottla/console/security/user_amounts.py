"""UserAmounts: how much of something that is scarce is taken, by each user and in all.

What is taken counts until it is given back, however many sessions its user has, and also after they have ended.
"""

from __future__ import annotations

from collections import Counter


class UserAmounts:
    """The amounts that are taken now."""

    def __init__(self) -> None:
        self._of_user: Counter[str] = Counter()
        self._of_all = 0

    @property
    def of_all(self) -> int:
        return self._of_all

    def of(self, user: str) -> int:
        return self._of_user[user]

    def take(self, user: str, amount: int) -> TakenAmount:
        """Take an amount. Callers have looked whether there is enough."""
        taken = TakenAmount(self, user)
        taken.change(amount)
        return taken

    def add(self, user: str, amount: int) -> None:
        self._of_all += amount
        self._of_user[user] += amount
        if not self._of_user[user]:
            del self._of_user[user]


class TakenAmount:
    """What was taken for one purpose."""

    def __init__(self, amounts: UserAmounts, user: str) -> None:
        self._amounts = amounts
        self._user = user
        self._amount = 0

    def change(self, amount: int) -> None:
        """Need another amount from here on."""
        self._amounts.add(self._user, amount - self._amount)
        self._amount = amount

    def give_back(self) -> None:
        self.change(0)
