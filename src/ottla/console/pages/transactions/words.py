"""The words that the pages about transactions share."""

from __future__ import annotations

from ottla.client.explain.words import span
from ottla.console.html import Markup
from ottla.console.named import named_path
from ottla.console.parts.words import Mood, badge, link, tabs, told
from ottla.model.ids import TopicPartition

LIST_PATH = "/transactions"
HELD_PATH = "/transactions/held/partitions"
TRAIL = (("Transactions", LIST_PATH),)
# A transaction that is open for longer than this is worth a look; by default it ends by itself after a minute.
LONG_MS = 60_000


def transaction_tabs(here: str) -> Markup:
    return tabs((("Transactional ids", LIST_PATH), ("Held partitions and hanging transactions", HELD_PATH)), here)


def transaction_state(state: str) -> Markup:
    moods: dict[str, Mood] = {"Ongoing": "fair", "CompleteCommit": "good", "CompleteAbort": "plain", "Dead": "bad"}
    return badge(state, moods.get(state, "fair" if state.startswith("Prepare") else "plain"))


def transaction_link(transactional_id: str) -> Markup:
    text = told(transactional_id) if transactional_id else "(the empty name)"
    return link(text, named_path("transactions", transactional_id))


def age_text(age_ms: int | None) -> str:
    return "-" if age_ms is None else span(age_ms / 1000)


def age_badge(age_ms: int | None) -> Markup | str:
    return "-" if age_ms is None else badge(age_text(age_ms), "bad" if age_ms > LONG_MS else "fair")


def place_text(at: TopicPartition) -> str:
    return f"{at.topic}-{at.partition}"
