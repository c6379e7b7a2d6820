"""The topics under contract, and the way to put another one under contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to, tag
from ottla.console.pages.contracts.terms import TopicContract, known_subjects, read_terms, refusals_of
from ottla.console.pages.topics.seen import topics_seen
from ottla.console.parts.forms import field, query_form
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import Mood, badge, card, code, figure, figures, link, notice, told
from ottla.console.routing import page

_OFFERED_MAX = 500
ONLY_OTTLA = "these brokers are not Ottla's: Kafka's brokers do not check records against schemas"
_MOODS: dict[str, Mood] = {"full": "good", "id": "good"}


@dataclass(frozen=True, slots=True)
class ContractRow:
    """A topic under contract; `refused` is None if no node tells."""

    terms: TopicContract
    missing: tuple[str, ...]
    refused: float | None


@page("/contracts")
async def contracts_page(call: PageCall) -> Page:
    if not await call.access.is_ottla():
        return Page("Contracts", notice(ONLY_OTTLA, "plain", "a client's serializer is what checks there"))
    names = [each.name for each in await topics_seen(call.access).all()]
    terms, hidden = await call.access.aside(lambda admin: read_terms(admin, names))
    subjects = await known_subjects(call.access)
    refused = await refusals_of(call.access)
    rows = [_row(each, subjects, refused) for each in terms if each.is_on]
    table = listing(
        call,
        _columns(),
        rows,
        text=lambda row: f"{row.terms.topic} {row.terms.check} {row.terms.action}",
        sort="topic",
        empty="no topic is under contract",
        noun="topic",
    )
    head = figures(
        figure("topics under contract", len(rows), note=f"of {len(terms):,}"),
        figure("subjects missing", sum(len(row.missing) for row in rows), mood="bad" if _missing(rows) else "plain"),
        figure("batches refused", _refused_text(refused), note="since the nodes started"),
    )
    notes = []
    if refused is None:
        said = ["no node tells its metrics here: ", code("ottla.metrics.listener"), " turns them on"]
        notes.append(tag("p", said, class_="hint"))
    if hidden:
        notes.append(tag("p", f"{hidden} topics are not shown: their settings may not be seen", class_="hint"))
    return Page("Contracts", [head, card("Topics under contract", table, notes), _choose(names)])


@page("/contracts/-/choose")
async def choose(call: PageCall) -> Answer:
    return Redirect(path_to("contracts", call.text("topic")))


def _row(terms: TopicContract, subjects: frozenset[str] | None, refused: Mapping[str, float] | None) -> ContractRow:
    missing = () if subjects is None else tuple(each for each in terms.subjects if each not in subjects)
    return ContractRow(terms, missing, None if refused is None else refused.get(terms.topic, 0.0))


def _missing(rows: list[ContractRow]) -> bool:
    return any(row.missing for row in rows)


def _refused_text(refused: Mapping[str, float] | None) -> str:
    return "unknown" if refused is None else f"{sum(refused.values()):,.0f}"


def _choose(names: list[str]) -> Content:
    entry = query_form(
        path_to("contracts", "-", "choose"),
        field("topic", "Topic", required=True, options=names[:_OFFERED_MAX]),
        submit="Show its contract",
    )
    return card("Another topic", entry)


def subjects_text(terms: TopicContract, missing: tuple[str, ...] = ()) -> Content:
    """The subjects that a contract relies on, and which of them are not there."""
    if not terms.is_on:
        return "none"
    if not terms.subjects:
        return "any subject"
    return [
        tag(
            "div", link(told(each), path_to("schemas", each)), " ", badge("missing", "bad") if each in missing else None
        )
        for each in terms.subjects
    ]


def _columns() -> tuple[Column[ContractRow], ...]:
    def check(row: ContractRow) -> Content:
        return badge(told(row.terms.check), _MOODS.get(row.terms.check, "plain"))

    def action(row: ContractRow) -> Content:
        letters = row.terms.letters_topic
        to = tag("div", "to ", link(told(letters), path_to("topics", letters))) if letters else None
        return [told(row.terms.action), to]

    def refused(row: ContractRow) -> str:
        return "-" if row.refused is None else f"{row.refused:,.0f}"

    return (
        Column(
            "Topic",
            lambda row: link(told(row.terms.topic), path_to("contracts", row.terms.topic)),
            lambda row: row.terms.topic.lower(),
        ),
        Column("Checked", check, lambda row: row.terms.check),
        Column("Of", lambda row: told(row.terms.of), lambda row: row.terms.of),
        Column("What becomes of the rest", action, lambda row: row.terms.action),
        Column("Relies on", lambda row: subjects_text(row.terms, row.missing)),
        Column("Batches refused", refused, lambda row: row.refused, is_number=True),
    )
