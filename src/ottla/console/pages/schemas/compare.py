"""Two versions of a subject: what differs in their lines, and what it means for who reads and who writes."""

from __future__ import annotations

import re
from typing import NamedTuple

from ottla.client.registry import SchemaRegistry
from ottla.client.registry_calls import versions_of
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.schemas.subject import subject_tabs, trail_of
from ottla.console.parts.forms import choice, query_form
from ottla.console.parts.words import badge, card, cards, notice, told
from ottla.console.routing import page
from ottla.model import limits
from ottla.operations.schema_text import diff_lines, pretty
from ottla.operations.threads import BlockingWork, in_thread
from ottla.schemas.parse import parse
from ottla.schemas.schema import Incompatibility, InvalidSchema, SchemaSource, UnsupportedSchema

_CLASSES = {"+": "added", "-": "removed"}
_SHOWN_MAX = 100
# How Confluent writes what is wrong between two Avro schemas.
_DESCRIPTION = re.compile(r"description:'(.*?)', additionalInfo:'(.*)'\}", re.DOTALL)


class SchemaDifference(NamedTuple):
    """Lines of a unified diff (None: the texts are too long for it), and why one version cannot read the other."""

    versions: list[int]
    lines: list[str] | None
    new_reads_old: list[Incompatibility] | str
    old_reads_new: list[Incompatibility] | str


@page("/schemas/{subject}/diff")
async def diff_page(call: PageCall) -> Page:
    subject, registry = call.params["subject"], call.registry
    versions = await in_thread(BlockingWork.registry, versions_of, registry, subject, deleted=True)
    if len(versions) < 2:
        content: Content = notice("there is one version only: there is nothing to compare", "plain")
        return Page("Differences", [subject_tabs(call, subject), content], trail_of(subject))
    old = call.number("old", versions[-2], least=1, most=2**31 - 1)
    new = call.number("new", versions[-1], least=1, most=2**31 - 1)
    found = await in_thread(BlockingWork.registry, _compare, registry, subject, versions, old, new)
    options = [str(each) for each in reversed(versions)]
    form = query_form(
        path_to("schemas", subject, "diff"),
        choice("old", "From", options, str(old)),
        choice("new", "To", options, str(new)),
        submit="Compare",
        class_="form wide",
    )
    meaning = cards(
        card(f"Readers with version {new}, data of version {old}", _verdict(found.new_reads_old), _backward()),
        card(f"Readers with version {old}, data of version {new}", _verdict(found.old_reads_new), _forward()),
    )
    content = [subject_tabs(call, subject), card("Versions", form), meaning, card("Lines", diff_block(found.lines))]
    return Page(f"Version {old} and version {new}", content, trail_of(subject))


def diff_block(lines: list[str] | None) -> Markup:
    """The lines of a diff, each with its colour."""
    if lines is None:
        return notice(
            f"a text has more than {limits.SCHEMA_DIFF_LINES_MAX:,} lines: its differences are not shown", "fair"
        )
    if not lines:
        return tag("p", "The texts are the same.", class_="empty")
    shown = [tag("span", told(each), "\n", class_=_CLASSES.get(each[:1])) for each in lines]
    return tag("pre", shown, tabindex="0")


def lines_between(old: tuple[str, str, str], new: tuple[str, str, str]) -> list[str] | None:
    """The differences of two (name, type, text); None if they are too long to compare."""
    if any(pretty(each[1], each[2]).count("\n") > limits.SCHEMA_DIFF_LINES_MAX for each in (old, new)):
        return None
    return diff_lines(old, new)


def _compare(registry: SchemaRegistry, subject: str, versions: list[int], old: int, new: int) -> SchemaDifference:
    before, after = registry.version(subject, old).source, registry.version(subject, new).source
    lines = lines_between(
        (f"version {old}", before.type.value, before.text), (f"version {new}", after.type.value, after.text)
    )
    return SchemaDifference(versions, lines, _unreadable(after, before), _unreadable(before, after))


def _unreadable(reader: SchemaSource, writer: SchemaSource) -> list[Incompatibility] | str:
    """Why a reader cannot read what a writer wrote; a text if that cannot be told."""
    if reader.type is not writer.type:
        return "the schemas have different types"
    try:
        return list(parse(reader).incompatibilities(parse(writer)))
    except (InvalidSchema, UnsupportedSchema, RecursionError) as error:
        return f"that cannot be told: {error}"


def _verdict(found: list[Incompatibility] | str) -> Content:
    if isinstance(found, str):
        return notice(told(found), "fair")
    if not found:
        return badge("compatible", "good")
    items = [
        tag("li", tag("b", each.kind.replace("_", " ").lower() or "not readable"), " ", told(_sentence(each)))
        for each in found[:_SHOWN_MAX]
    ]
    return [badge("not compatible", "bad"), tag("ul", items)]


def _sentence(it: Incompatibility) -> str:
    described = _DESCRIPTION.search(it.message)
    if described is None:
        return it.message.replace("%s", "reader", 1).replace("%s", "writer", 1)
    return f"{described[1]}: {described[2]}"


def _backward() -> Markup:
    return tag("small", "what the levels BACKWARD and FULL ask for")


def _forward() -> Markup:
    return tag("small", "what the levels FORWARD and FULL ask for")
