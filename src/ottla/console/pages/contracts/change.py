"""The contract of one topic: its terms, a preview of others, and the change."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.client.admin.configs import Change, Operation
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.contracts.page import ONLY_OTTLA, subjects_text
from ottla.console.pages.contracts.terms import (
    ACTIONS,
    CHECKS,
    SETTINGS,
    TopicContract,
    known_subjects,
    read_one,
    terms_of,
)
from ottla.console.parts.forms import any_form, choice, field, form, hidden
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import card, cards, code, facts, link, notice, told
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import action, page
from ottla.model.resources import Resource, ResourceType

_OF = (("value", "values"), ("key", "keys"), ("both", "keys and values"))
_SUBJECTS = (("topic", "the topic's own"), ("any", "any"))


@page("/contracts/{topic}")
async def contract_page(call: PageCall) -> Page:
    return await _page(call)


@action("/contracts/{topic}/preview", in_read_only=True)
async def preview(call: PageCall) -> Answer:
    """What the terms that were chosen would change."""
    topic = call.params["topic"]
    now, then = await read_one(call.admin, topic), _chosen(call)
    changes = _changes(now, then)
    if not changes:
        return await _page(call, then, notice("nothing would change", "plain"))
    await call.admin.configs.alter(Resource(ResourceType.TOPIC, topic), changes, validate_only=True)
    subjects = await known_subjects(call.access)
    missing = () if subjects is None else tuple(each for each in then.subjects if each not in subjects)
    old, new = now.values(), then.values()
    rows = [(each.name, old[each.name], new[each.name]) for each in changes]
    confirm = form(
        call,
        path_to("contracts", topic, "change"),
        [hidden(name, value) for name, value in call.form.items() if name in _FIELDS],
        submit="Change the contract",
    )
    warnings = [notice(each, "fair") for each in _warnings(now, then, missing)]
    content = [warnings, plain_table(_CHANGES, rows), _meaning(then, missing), confirm]
    return Page("Change the contract", card(["What will change for ", told(topic)], content), _trail(topic))


@action("/contracts/{topic}/change")
async def change(call: PageCall) -> Redirect:
    topic = call.params["topic"]
    changes = _changes(await read_one(call.admin, topic), _chosen(call))
    await call.admin.configs.alter(Resource(ResourceType.TOPIC, topic), changes)
    return Redirect(path_to("contracts", topic), done=f"The contract of {topic} was changed")


async def _page(call: PageCall, chosen: TopicContract | None = None, said: Content = None) -> Page:
    topic = call.params["topic"]
    if not await call.access.is_ottla():
        raise RefusedRequest(404, ONLY_OTTLA)
    now = await read_one(call.admin, topic)
    subjects = await known_subjects(call.access)
    missing = () if subjects is None else tuple(each for each in now.subjects if each not in subjects)
    shown = chosen or now
    entry = any_form(
        call,
        path_to("contracts", topic, "preview"),
        choice("check", "Check", [(name, f"{name}: {text}") for name, text in CHECKS.items()], shown.check),
        choice("of", "Of a record", _OF, shown.of),
        choice("subject", "Registered in subjects", _SUBJECTS, shown.subject),
        choice("failing", "What fails", [(name, f"{name}: {text}") for name, text in ACTIONS.items()], shown.action),
        field("letters", "Dead-letter topic", shown.letters, hint=["if empty, ", told(f"{topic}.dlq")]),
        submit="Show what will change",
    )
    content = [said, cards(card("Now", _meaning(now, missing)), card("Change it", entry))]
    return Page(f"Contract of {topic}", content, (("Contracts", "/contracts"),))


_FIELDS = ("check", "failing", "of", "subject", "letters")
_CHANGES: Sequence[Column[tuple[str, str, str]]] = (
    Column("Setting", lambda row: code(row[0])),
    Column("Now", lambda row: told(row[1] or "(empty)")),
    Column("Then", lambda row: tag("b", told(row[2] or "(empty)"))),
)


def _chosen(call: PageCall) -> TopicContract:
    given = {each.name: call.text(word, "") for each, word in zip(SETTINGS, _FIELDS, strict=True)}
    return terms_of(call.params["topic"], given)


def _changes(now: TopicContract, then: TopicContract) -> list[Change]:
    """The settings that differ; one that gets its default again is not set any more."""
    old, new, default = now.values(), then.values(), {each.name: str(each.default or "") for each in SETTINGS}
    return [
        Change(name, None, Operation.DELETE) if value == default[name] else Change(name, value)
        for name, value in new.items()
        if value != old[name]
    ]


def _meaning(terms: TopicContract, missing: tuple[str, ...]) -> Markup:
    pairs: list[tuple[Content, Content]] = [
        ("topic", link(told(terms.topic), path_to("topics", terms.topic))),
        ("check", CHECKS.get(terms.check, told(terms.check))),
    ]
    if terms.is_on:
        pairs += [
            ("of a record", dict(_OF).get(terms.of, told(terms.of))),
            ("relies on", subjects_text(terms, missing)),
            ("what fails", ACTIONS.get(terms.action, told(terms.action))),
        ]
    if terms.is_on and terms.letters_topic:
        pairs.append(("dead letters", link(told(terms.letters_topic), path_to("topics", terms.letters_topic))))
    return facts(pairs)


def _warnings(now: TopicContract, then: TopicContract, missing: tuple[str, ...]) -> list[Content]:
    found: list[Content] = []
    if missing:
        refused = "every record fails until it is registered"
        found += [[told(each), f" is not registered: {refused}"] for each in missing]
    if then.is_on and not now.is_on:
        found.append("producers that write records without schema ids, or with other schemas, will notice at once")
    if now.is_on and not then.is_on:
        found.append("records that break the schema will be written from then on")
    return found


def _trail(topic: str) -> tuple[tuple[str, str], ...]:
    return (("Contracts", "/contracts"), (topic, path_to("contracts", topic)))
