"""Changes of a subject as a whole: its compatibility level, and deleting it or one of its versions."""

from __future__ import annotations

from ottla.client.registry import RegistryError, SchemaRegistry
from ottla.client.registry_calls import delete_versions, level_of, referrers_of, set_level, versions_of
from ottla.console.answers import Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import path_to, tag
from ottla.console.pages.schemas.subject import subject_tabs, trail_of
from ottla.console.pages.schemas.subjects import level_text
from ottla.console.parts.forms import check_box, choice, field, form
from ottla.console.parts.words import card, facts, notice, told
from ottla.console.refusals import RefusedRequest, WrongInput
from ottla.console.routing import action, page
from ottla.operations.threads import BlockingWork, in_thread
from ottla.schemas.compatibility import Level

_DEFAULT = "default"
_MEANINGS = (
    ("NONE", "any schema may follow"),
    ("BACKWARD", "readers with the new version read data of the last one"),
    ("FORWARD", "readers with the last version read data of the new one"),
    ("FULL", "both"),
    ("…_TRANSITIVE", "the same with all versions, and not only the last one"),
)


@page("/schemas/{subject}/level")
async def level_page(call: PageCall) -> Page:
    subject = call.params["subject"]
    level = await in_thread(BlockingWork.registry, level_of, call.registry, subject)
    options = [(_DEFAULT, "that of the registry"), *((each.value, each.value) for each in Level)]
    entry = form(
        call,
        path_to("schemas", subject, "level"),
        choice("level", "Level", options, level.level if level.is_own else _DEFAULT),
        submit="Set the level",
    )
    now = facts([("now", level_text(level)), *_MEANINGS])
    note = tag("p", "It counts for versions that are registered from then on; those there are stay as they are.")
    return Page("Compatibility", [subject_tabs(call, subject), card("Level", now, note, entry)], trail_of(subject))


@action("/schemas/{subject}/level")
async def change_level(call: PageCall) -> Redirect:
    subject, given = call.params["subject"], call.text("level")
    if given != _DEFAULT and given not in list(Level):
        raise WrongInput(f"the level is one of {', '.join(Level)}")
    await in_thread(
        BlockingWork.registry, set_level, call.registry, subject, None if given == _DEFAULT else Level(given)
    )
    what = "that of the registry" if given == _DEFAULT else given
    return Redirect(path_to("schemas", subject), done=f"The compatibility level of {subject} is {what}")


@page("/schemas/{subject}/delete")
async def delete_page(call: PageCall) -> Page:
    subject = call.params["subject"]
    live, every, referred = await in_thread(BlockingWork.registry, _preview, call.registry, subject)
    if not every:
        raise RefusedRequest(404, "there is no such subject")
    options = [("", "all versions"), *((str(each), f"version {each}") for each in reversed(every))]
    what = facts(
        [
            ("versions", ", ".join(map(str, live)) or "none"),
            ("softly deleted", ", ".join(str(each) for each in every if each not in live) or "none"),
            ("referred to by", f"{referred} other schemas" if referred else "nothing"),
        ]
    )
    warning = (
        notice("other schemas refer to it: the registry refuses to delete what they need", "fair") if referred else None
    )
    explained = tag(
        "p",
        "Softly deleted versions are hidden, and records written with them stay readable. A permanent deletion cannot "
        "be undone, and records written with these schemas cannot be decoded any more.",
    )
    entry = form(
        call,
        path_to("schemas", subject, "delete"),
        choice("version", "What", options),
        check_box("permanent", "Permanently"),
        field("name", "The subject's name, to confirm", hint=["type ", told(subject)], required=True),
        submit="Delete",
        is_dangerous=True,
    )
    return Page(
        "Delete", [subject_tabs(call, subject), card("Delete", warning, what, explained, entry)], trail_of(subject)
    )


@action("/schemas/{subject}/delete")
async def delete(call: PageCall) -> Redirect:
    subject = call.params["subject"]
    if call.text("name") != subject.strip():
        raise WrongInput("the name that was typed is not that of the subject: nothing was deleted")
    version = call.number("version", 0, most=2**31 - 1) or None
    permanent = "permanent" in call.form
    gone = await in_thread(BlockingWork.registry, delete_versions, call.registry, subject, version, permanent=permanent)
    what = f"Version{'s' if len(gone) > 1 else ''} {', '.join(map(str, gone))} of {subject}"
    done = f"{what} {'were' if len(gone) > 1 else 'was'} deleted" + (" permanently" if permanent else "")
    return Redirect("/schemas", done=done)


def _preview(registry: SchemaRegistry, subject: str) -> tuple[list[int], list[int], int]:
    live, every = versions_of(registry, subject), versions_of(registry, subject, deleted=True)
    try:
        referred = {each for version in live[-20:] for each in referrers_of(registry, subject, version)}
    except RegistryError as error:
        if not error.is_not_found:
            raise
        referred = set()
    return live, every, len(referred)
