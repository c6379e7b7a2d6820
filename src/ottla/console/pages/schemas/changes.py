"""Changes of a subject as a whole: its compatibility level, and deleting it or one of its versions."""

from __future__ import annotations

from ottla.client.registry import RegistryError, SchemaRegistry
from ottla.client.registry_calls import delete_versions, level_of, referrers_of, set_level, versions_of
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS
from ottla.console.html import path_to, tag
from ottla.console.pages.schemas.subject import subject_tabs, trail_of
from ottla.console.pages.schemas.subjects import level_text
from ottla.console.parts.forms import check_box, choice, field, form
from ottla.console.parts.typed import TypedForm
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
    return await _level(call, TypedForm(call))


async def _level(call: PageCall, typed: TypedForm) -> Page:
    subject = call.params["subject"]
    level = await in_thread(BlockingWork.registry, level_of, call.registry, subject)
    options = [(_DEFAULT, "that of the registry"), *((each.value, each.value) for each in Level)]
    entry = form(
        call,
        path_to("schemas", subject, "level"),
        choice("level", "Level", options, level.level if level.is_own else _DEFAULT, typed=typed),
        submit="Set the level",
    )
    now = facts([("now", level_text(level)), *_MEANINGS])
    note = tag("p", "It counts for versions that are registered from then on; those there are stay as they are.")
    content = [subject_tabs(call, subject), typed.said, card("Level", now, note, entry)]
    return Page("Compatibility", content, trail_of(subject), typed.status)


@action("/schemas/{subject}/level")
async def change_level(call: PageCall) -> Answer:
    subject = call.params["subject"]
    try:
        given = call.text("level")
        if given != _DEFAULT and given not in list(Level):
            raise WrongInput(f"the level is one of {', '.join(Level)}", field="level")
        wanted = None if given == _DEFAULT else Level(given)
        await in_thread(BlockingWork.registry, set_level, call.registry, subject, wanted)
    except REFUSALS as error:
        return await _level(call, TypedForm(call, error))
    what = "that of the registry" if given == _DEFAULT else given
    return Redirect(path_to("schemas", subject), done=f"The compatibility level of {subject} is {what}")


@page("/schemas/{subject}/delete")
async def delete_page(call: PageCall) -> Page:
    return await _deletion(call, TypedForm(call))


async def _deletion(call: PageCall, typed: TypedForm) -> Page:
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
        choice("version", "What", options, typed=typed),
        check_box("permanent", "Permanently", typed=typed),
        field("name", "The subject's name, to confirm", hint=["type ", told(subject)], required=True, typed=typed),
        submit="Delete",
        is_dangerous=True,
    )
    content = [subject_tabs(call, subject), typed.said, card("Delete", warning, what, explained, entry)]
    return Page("Delete", content, trail_of(subject), typed.status)


@action("/schemas/{subject}/delete")
async def delete(call: PageCall) -> Answer:
    subject, permanent = call.params["subject"], "permanent" in call.form
    try:
        if call.text("name") != subject.strip():
            raise WrongInput("the name that was typed is not that of the subject: nothing was deleted", field="name")
        version = call.number("version", 0, most=2**31 - 1) or None
        gone = await in_thread(
            BlockingWork.registry, delete_versions, call.registry, subject, version, permanent=permanent
        )
    except REFUSALS as error:
        return await _deletion(call, TypedForm(call, error))
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
