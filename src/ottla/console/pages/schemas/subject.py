"""One subject: its versions, the schema of one of them, and what refers to what."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.registry import RegistryError, SchemaRegistry
from ottla.client.registry_calls import (
    LevelSetting,
    SubjectEntry,
    level_of,
    mode_of,
    referrers_of,
    users_of,
    version_of,
    versions_of,
)
from ottla.console.answers import FileAnswer, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.schemas.subjects import level_text
from ottla.console.parts.forms import choice, query_form
from ottla.console.parts.words import badge, block, card, cards, facts, link, notice, tabs, told
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import page
from ottla.model import limits
from ottla.operations.schema_text import pretty
from ottla.operations.threads import BlockingWork, in_thread
from ottla.schemas.schema import Reference

Trail = tuple[tuple[str, str], ...]
_REFERRERS_SHOWN = 50


class SubjectView(NamedTuple):
    """What there is to see of a subject, at one of its versions."""

    versions: list[int]
    deleted: list[int]
    shown: SubjectEntry
    level: LevelSetting | None
    mode: str | None
    referrers: list[tuple[str, int]]


@page("/schemas/{subject}")
async def subject_page(call: PageCall) -> Page:
    subject = call.params["subject"]
    wanted = call.number("version", 0, most=2**31 - 1)
    seen = await in_thread(BlockingWork.registry, _read, call.registry, subject, wanted)
    gone = notice("this subject is softly deleted: registering a schema restores it", "fair")
    content = [
        subject_tabs(call, subject),
        None if seen.versions else gone,
        cards(card("Subject", _facts(call, seen)), card("Versions", _versions(subject, seen))),
        _schema(subject, seen.shown),
    ]
    return Page(subject, content, trail_of())


@page("/schemas/{subject}/text")
async def text(call: PageCall) -> FileAnswer:
    """The text of a version as it was registered."""
    version = call.number("version", least=1, most=2**31 - 1)
    found = await in_thread(BlockingWork.registry, version_of, call.registry, call.params["subject"], version)
    ending = {"AVRO": "avsc", "PROTOBUF": "proto"}.get(found.kind, "json")
    name = f"{found.subject}-{found.version}.{ending}"
    return FileAnswer(found.text.encode("utf-8", "replace"), "text/plain; charset=utf-8", name)


def trail_of(subject: str | None = None) -> Trail:
    """The pages above a page of a subject."""
    above: Trail = (("Schemas", "/schemas"),)
    return above if subject is None else (*above, (subject, path_to("schemas", subject)))


def subject_tabs(call: PageCall, subject: str) -> Markup:
    """The pages of a subject."""
    named: list[tuple[Content, str]] = [
        ("Schema", path_to("schemas", subject)),
        ("Differences", path_to("schemas", subject, "diff")),
        ("Check or register", path_to("schemas", subject, "register")),
        ("Compatibility", path_to("schemas", subject, "level")),
        ("Delete", path_to("schemas", subject, "delete")),
    ]
    return tabs(named, path_to(*call.path.strip("/").split("/", 1)[:1], *_rest(call, subject)))


def _rest(call: PageCall, subject: str) -> tuple[str, ...]:
    last = call.path.rsplit("/", 1)[-1]
    return (subject, last) if last in ("diff", "register", "level", "delete", "check") else (subject,)


def schema_text(kind: str, text: str) -> Markup:
    """A schema laid out, as much of it as a page shows."""
    laid_out = pretty(kind, text)
    most = limits.CONSOLE_VALUE_BYTES_MAX
    if len(laid_out) <= most:
        return block(laid_out)
    return tag("div", notice(f"the first {most:,} of {len(laid_out):,} characters", "fair"), block(laid_out[:most]))


def _read(registry: SchemaRegistry, subject: str, wanted: int) -> SubjectView:
    every = versions_of(registry, subject, deleted=True)
    if not every:
        raise RefusedRequest(404, "there is no such subject", "its page may be older than the subject")
    live = versions_of(registry, subject)
    shown = version_of(registry, subject, wanted or (live or every)[-1])
    level: LevelSetting | None = None
    mode: str | None = None
    try:
        level, mode = level_of(registry, subject), mode_of(registry, subject)
    except RegistryError as error:
        if error.status != 403:
            raise
    users = [
        user
        for schema_id in referrers_of(registry, subject, shown.version)[:_REFERRERS_SHOWN]
        for user in users_of(registry, schema_id)
    ]
    return SubjectView(live, [each for each in every if each not in live], shown, level, mode, users)


def _facts(call: PageCall, seen: SubjectView) -> Content:
    shown = seen.shown
    name = shown.subject.removesuffix("-value").removesuffix("-key")
    topic = link(told(name), path_to("topics", name)) if name != shown.subject else None
    pairs: list[tuple[Content, Content]] = [
        ("type", badge(shown.kind)),
        ("compatibility", level_text(seen.level)),
        ("mode", seen.mode or "unknown"),
        ("version shown", f"{shown.version}, with id {shown.schema_id}"),
        ("refers to", _references(shown.references) or "nothing"),
        ("referred to by", _users(seen.referrers) or "nothing"),
    ]
    return facts([*pairs, *([("topic", topic)] if topic is not None else [])])


def _references(references: tuple[Reference, ...]) -> Content:
    return [
        tag("div", told(each.name), " is ", _version_link(each.subject, each.version)) for each in references
    ] or None


def _users(users: list[tuple[str, int]]) -> Content:
    return [tag("div", _version_link(subject, version)) for subject, version in users] or None


def _version_link(subject: str, version: int) -> Markup:
    return link([told(subject), f" version {version}"], path_to("schemas", subject, version=version))


def _versions(subject: str, seen: SubjectView) -> Content:
    items = []
    for each in sorted({*seen.versions, *seen.deleted}, reverse=True)[: limits.CONSOLE_ROWS]:
        here = each == seen.shown.version
        name = (
            tag("b", f"version {each}") if here else link(f"version {each}", path_to("schemas", subject, version=each))
        )
        state = badge("deleted", "fair") if each in seen.deleted else None
        items.append(tag("li", name, " ", state))
    form = None
    if len(seen.versions) > 1:
        options = [str(each) for each in reversed(seen.versions)]
        form = query_form(
            path_to("schemas", subject, "diff"),
            choice("old", "From", options, options[1]),
            choice("new", "To", options, options[0]),
            submit="Compare",
            class_="form wide",
        )
    return [tag("ul", items), form]


def _schema(subject: str, shown: SubjectEntry) -> Markup:
    whole = link("as a file", path_to("schemas", subject, "text", version=shown.version))
    return card(f"Version {shown.version}", schema_text(shown.kind, shown.text), tag("p", whole))
