"""All subjects of the registry."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.registry import RegistryError, SchemaRegistry
from ottla.client.registry_calls import (
    LevelSetting,
    SubjectEntry,
    global_level,
    latest_of_all,
    level_of,
)
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.parts.tables import Column, cut, listed
from ottla.console.parts.words import badge, card, figure, figures, link, notice, told
from ottla.console.routing import page
from ottla.operations.threads import BlockingWork, in_thread

NO_REGISTRY = "no schema registry is known"


@page("/schemas")
async def subjects_page(call: PageCall) -> Page:
    if call.access.registry is None:
        return Page("Schemas", notice(NO_REGISTRY, "fair", "`ottla console --registry URL` names one"))
    registry = call.registry
    found, deleted, level = await in_thread(BlockingWork.registry, _read, registry)
    part = cut(call, _columns({}), found, text=_text, sort="subject")
    levels = await in_thread(BlockingWork.registry, _levels, registry, [each.subject for each in part.shown])
    table = listed(call, _columns(levels), part, empty="no schema is registered yet", noun="subject")
    counts = figures(
        figure("subjects", f"{len(found):,}"),
        figure("softly deleted", f"{len(deleted):,}"),
        figure("level of the registry", level),
    )
    new = (
        tag("p", link("Register a schema", path_to("schemas", "-", "new"), class_="button"))
        if call.may_change
        else None
    )
    return Page("Schemas", [counts, new, card("Subjects", table), _deleted(deleted)])


def _read(registry: SchemaRegistry) -> tuple[list[SubjectEntry], list[str], str]:
    deleted: list[str] = registry.call("GET", "subjects", deletedOnly=True)
    try:
        level = global_level(registry)
    except RegistryError as error:
        if error.status != 403:
            raise
        level = "not allowed to see"
    return latest_of_all(registry), sorted(deleted), level


def _levels(registry: SchemaRegistry, subjects: list[str]) -> dict[str, LevelSetting | None]:
    found: dict[str, LevelSetting | None] = {}
    for each in subjects:
        try:
            found[each] = level_of(registry, each)
        except RegistryError:
            found[each] = None
    return found


def _text(row: SubjectEntry) -> str:
    return f"{row.subject} {row.kind}"


def _columns(levels: Mapping[str, LevelSetting | None]) -> tuple[Column[SubjectEntry], ...]:
    return (
        Column(
            "Subject",
            lambda each: link(told(each.subject), path_to("schemas", each.subject)),
            lambda each: each.subject.lower(),
        ),
        Column("Type", lambda each: badge(each.kind), lambda each: each.kind),
        Column("Latest version", lambda each: each.version, lambda each: each.version, is_number=True),
        Column("Id", lambda each: each.schema_id, lambda each: each.schema_id, is_number=True),
        Column("Compatibility", lambda each: level_text(levels.get(each.subject))),
        Column("References", lambda each: len(each.references) or None, is_number=True),
    )


def level_text(level: LevelSetting | None) -> Content:
    """A compatibility level, and whether it is the subject's own."""
    if level is None:
        return tag("small", "unknown")
    return [
        badge(level.level),
        None if level.is_own else tag("small", " default"),
    ]


def _deleted(names: list[str]) -> Markup | None:
    if not names:
        return None
    items = [tag("li", link(told(each), path_to("schemas", each))) for each in names[:100]]
    rest = tag("p", f"and {len(names) - 100} more") if len(names) > 100 else None
    return card(f"Softly deleted ({len(names)})", tag("details", tag("summary", "Show"), tag("ul", items), rest))
