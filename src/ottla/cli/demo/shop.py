"""A simulated shop: its users, orders and payments; and the results that a pipeline must compute from them.

Everything follows from a seed and the moment the shop opened, so the demo knows the exact totals before Spark does.

Rules of this shop:
- An order is paid within five minutes, or later, or never; only the first kind counts as sold.
- Events are sent a little out of order, by up to a minute, as phones and browsers would.
- `closing` events, a day later, let the last windows end: a window ends when an event comes well after it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
PAID_WITHIN_MS = 5 * MINUTE_MS
WINDOW_MS = 10 * MINUTE_MS
_ORDER_EVERY_MS = 900  # on average
_TOLD_LATE_MS = MINUTE_MS
_NEVER_PAID, _PAID_LATE = 0.06, 0.04
_NAMES = ("Milena", "Felice", "Max", "Grete", "Otto", "Felix", "Dora", "Oskar", "Elli", "Valli", "Hans", "Julie")
_COUNTRIES = ("AT", "CZ", "DE", "FR", "IT", "PL", "SK")
_METHODS = ("card", "transfer", "wallet")

USERS, ORDERS, PAYMENTS, SALES = "users", "orders", "payments", "sales"
TIMESTAMP = {"type": "long", "logicalType": "timestamp-millis"}
SCHEMAS: dict[str, dict[str, Any]] = {
    USERS: {
        "type": "record",
        "name": "User",
        "namespace": "shop",
        "fields": [
            {"name": "user_id", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "country", "type": "string"},
        ],
    },
    ORDERS: {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "order_id", "type": "long"},
            {"name": "user_id", "type": "long"},
            {"name": "cents", "type": "long"},
            {"name": "ordered_at", "type": TIMESTAMP},
        ],
    },
    PAYMENTS: {
        "type": "record",
        "name": "Payment",
        "namespace": "shop",
        "fields": [
            {"name": "order_id", "type": "long"},
            {"name": "method", "type": {"type": "enum", "name": "Method", "symbols": list(_METHODS)}},
            {"name": "paid_at", "type": TIMESTAMP},
        ],
    },
    SALES: {
        "type": "record",
        "name": "Sale",
        "namespace": "shop",
        "fields": [
            {"name": "order_id", "type": "long"},
            {"name": "user_id", "type": "long"},
            {"name": "country", "type": "string"},
            {"name": "cents", "type": "long"},
            {"name": "method", "type": "string"},
            {"name": "ordered_at", "type": TIMESTAMP},
        ],
    },
}


class ShopEvent(NamedTuple):
    """An event of the shop: a record of a topic, and when the shop sends it."""

    told_ms: int
    topic: str
    key: str
    value: dict[str, Any]


class Sale(NamedTuple):
    """An order that was paid in time."""

    order_id: int
    country: str
    cents: int
    ordered_ms: int

    @property
    def window_ms(self) -> int:
        return self.ordered_ms - self.ordered_ms % WINDOW_MS


@dataclass
class Shop:
    """The events of a shop, and their expected totals."""

    seed: int
    opened_ms: int
    users: int = 200
    orders: int = 20_000
    sales: dict[int, Sale] = field(default_factory=dict)

    def customers(self) -> list[ShopEvent]:
        rng = random.Random(f"{self.seed}-users")
        return [
            ShopEvent(
                self.opened_ms, USERS, str(number), self._user(number, rng.choice(_NAMES), rng.choice(_COUNTRIES))
            )
            for number in range(self.users)
        ]

    def _user(self, number: int, name: str, country: str) -> dict[str, Any]:
        return {"user_id": number, "name": f"{name} {number}", "country": country}

    def events(self) -> Iterator[ShopEvent]:
        """Orders and payments in the order in which they are sent; `sales` is complete after the last one."""
        countries = {each.value["user_id"]: each.value["country"] for each in self.customers()}
        rng = random.Random(self.seed)
        waiting: list[ShopEvent] = []
        now_ms = self.opened_ms
        for order_id in range(self.orders):
            now_ms += round(rng.expovariate(1) * _ORDER_EVERY_MS)
            waiting.extend(self._order(order_id, now_ms, rng, countries))
            if order_id % 100 == 0:
                waiting.sort()
                done = next((at for at, each in enumerate(waiting) if each.told_ms > now_ms), len(waiting))
                yield from waiting[:done]
                del waiting[:done]
        yield from sorted(waiting)

    def event_count(self) -> int:
        """How many `events` there are: an order that is never paid has one, the others have two."""
        return sum(1 for _ in replace(self, sales={}).events())

    def _order(self, order_id: int, now_ms: int, rng: random.Random, countries: dict[int, str]) -> Iterator[ShopEvent]:
        # A few users have most orders: squaring prefers the first users.
        user_id = int(rng.random() ** 2 * self.users)
        cents = 100 + round(rng.expovariate(1 / 4_000))
        value = {"order_id": order_id, "user_id": user_id, "cents": cents, "ordered_at": now_ms}
        yield ShopEvent(now_ms + rng.randrange(_TOLD_LATE_MS), ORDERS, str(order_id), value)
        chance = rng.random()
        if chance < _NEVER_PAID:
            return
        late = chance < _NEVER_PAID + _PAID_LATE
        after_ms = rng.randrange(2 * PAID_WITHIN_MS, 4 * PAID_WITHIN_MS) if late else rng.randrange(PAID_WITHIN_MS)
        if not late:
            self.sales[order_id] = Sale(order_id, countries[user_id], cents, now_ms)
        payment = {"order_id": order_id, "method": rng.choice(_METHODS), "paid_at": now_ms + after_ms}
        yield ShopEvent(now_ms + after_ms + rng.randrange(_TOLD_LATE_MS), PAYMENTS, str(order_id), payment)

    def closing(self, last_ms: int) -> list[ShopEvent]:
        """One order and its payment, a day after everything else."""
        at_ms = last_ms + DAY_MS
        order_id = self.orders
        order = {"order_id": order_id, "user_id": 0, "cents": 0, "ordered_at": at_ms}
        payment = {"order_id": order_id, "method": _METHODS[0], "paid_at": at_ms}
        return [ShopEvent(at_ms, ORDERS, str(order_id), order), ShopEvent(at_ms, PAYMENTS, str(order_id), payment)]

    def revenue(self) -> dict[tuple[int, str], tuple[int, int]]:
        """Sales and cents per window (its start, ms) and country."""
        totals: dict[tuple[int, str], tuple[int, int]] = {}
        for sale in self.sales.values():
            count, cents = totals.get((sale.window_ms, sale.country), (0, 0))
            totals[sale.window_ms, sale.country] = (count + 1, cents + sale.cents)
        return totals
