"""The settings of a topic: what each means, its value, and where that comes from; changed and reset on a page of its
own. The brokers check a change before it is made.
"""

from __future__ import annotations

from ottla.client.admin.configs import Change, ConfigEntry, Operation, Synonym
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS, failed_notice, failure_of
from ottla.console.html import Content, Markup, tag
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path, warn_of_internal
from ottla.console.parts.forms import area, check_box, choice, field, form
from ottla.console.parts.tables import Column, listing, plain_table
from ottla.console.parts.words import badge, card, code, facts, link, notice, told
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import action, page
from ottla.model import limits
from ottla.model.resources import ConfigSource, Resource
from ottla.model.setting import SettingKind
from ottla.operations.formats import duration_text, size_text

_SOURCES = {
    ConfigSource.TOPIC: "this topic",
    ConfigSource.DYNAMIC_BROKER: "a setting of the broker, changed while it runs",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "the cluster's default for brokers",
    ConfigSource.STATIC_BROKER: "the broker's file",
    ConfigSource.DEFAULT: "Kafka's default",
}
_HIDDEN = "hidden"
_LONG = 80


@page("/topics/{topic}/settings")
async def topic_settings(call: PageCall) -> Page:
    topic = topic_of(call)
    entries = await call.admin.configs.describe(Resource.topic(topic), documentation=True)
    own = sum(each.source == ConfigSource.TOPIC for each in entries)
    said = f"{own} of {len(entries)} settings are set for this topic; the others come from the brokers, or are Kafka's."
    columns: tuple[Column[ConfigEntry], ...] = (
        Column("Setting", lambda each: _name(topic, each), lambda each: each.name),
        Column("Value", _value, lambda each: each.value or ""),
        Column("From", _from, lambda each: (each.source, each.name)),
        Column("Default", _default),
        Column("What it does", lambda each: told(each.documentation or "")),
    )
    table = listing(call, columns, entries, text=_words, sort="from", noun="setting")
    return topic_page(topic, tag("p", said, class_="note"), table, tab="settings")


@page("/topics/{topic}/settings/{setting}")
async def one_setting(call: PageCall) -> Page:
    return await _page(call)


@action("/topics/{topic}/settings/{setting}")
async def change_setting(call: PageCall) -> Answer:
    topic, name = topic_of(call), call.params["setting"]
    is_reset = call.form.get("what") == "reset"
    value = None if is_reset else call.form.get("value", "").strip()
    change = Change(name, value, Operation.DELETE if is_reset else Operation.SET)
    resource = Resource.topic(topic)
    try:
        await call.admin.configs.alter(resource, [change], validate_only=True)
        if "check" in call.form:
            said = f"The brokers would accept {name} = {value}."
            return await _page(call, notice(told(said), "good"))
        await call.admin.configs.alter(resource, [change])
    except REFUSALS as error:
        status, sentence, hint = failure_of(error, call)
        return await _page(call, failed_notice(sentence, hint), status)
    done = f"{name} of {topic} was reset to its default" if is_reset else f"{name} of {topic} is now {value}"
    return Redirect(topic_path(topic, "settings"), done=done)


async def _page(call: PageCall, said: Content = None, status: int = 200) -> Page:
    topic, name = topic_of(call), call.params["setting"]
    entries = await call.admin.configs.describe(Resource.topic(topic), [name], documentation=True)
    if not entries:
        raise RefusedRequest(404, f"topics have no setting {name[:80]!r}")
    entry = entries[0]
    sources = plain_table(_SYNONYMS, entry.synonyms, empty="The broker does not tell.")
    return topic_page(
        topic,
        said,
        warn_of_internal(topic),
        tag("p", told(entry.documentation)) if entry.documentation else None,
        card("Now", facts([("Value", _value(entry)), ("From", _from(entry)), ("Type", entry.type.name.lower())])),
        card("Where it comes from", tag("p", "The first of these counts.", class_="note"), sources),
        _forms(call, entry),
        tab="settings",
        title=name,
        status=status,
    )


def _forms(call: PageCall, entry: ConfigEntry) -> Content:
    to = topic_path(topic_of(call), "settings", entry.name)
    if entry.is_read_only:
        return tag("p", "This setting cannot be changed for a topic.", class_="empty")
    check = check_box("check", "Only check it", is_checked="check" in call.form)
    typed = call.form.get("value", (not entry.is_sensitive and entry.value) or "")
    changing = card("Change it", form(call, to, _entry_field(entry, typed), check, submit="Set"))
    if entry.source != ConfigSource.TOPIC:
        return changing
    behind = entry.synonyms[1] if len(entry.synonyms) > 1 else None
    then = f"It would be {behind.value} then." if behind and not entry.is_sensitive else "It would take its default."
    what = tag("input", type="hidden", name="what", value="reset")
    return [changing, card("Reset it", tag("p", told(then)), form(call, to, what, submit="Reset to its default"))]


def _entry_field(entry: ConfigEntry, typed: str) -> Markup:
    if entry.type == SettingKind.BOOLEAN:
        return choice("value", "Value", ("true", "false"), typed)
    if len(typed) > _LONG:
        return area("value", "Value", typed, rows=4)
    return field("value", "Value", typed, type_="password" if entry.is_sensitive else "text")


_SYNONYMS: tuple[Column[Synonym], ...] = (
    Column("Setting", lambda each: code(each.name)),
    Column("Value", lambda each: code(_cut(each.value)) if each.value is not None else _HIDDEN),
    Column("From", lambda each: source_text(each.source)),
)


def source_text(source: ConfigSource) -> str:
    """Where a value comes from, in words."""
    return _SOURCES.get(source, source.name.lower().replace("_", " "))


def _name(topic: str, entry: ConfigEntry) -> Markup:
    return link(told(entry.name), topic_path(topic, "settings", entry.name))


def _value(entry: ConfigEntry) -> Content:
    if entry.is_sensitive or entry.value is None:
        return _HIDDEN
    meaning = _meaning(entry)
    return tag("div", code(_cut(entry.value)), tag("small", f" {meaning}") if meaning else None, class_="content")


def _meaning(entry: ConfigEntry) -> str:
    """A number of milliseconds or bytes as people read it."""
    if entry.value == str(limits.INT64_MAX):
        return "no limit"
    if entry.value is None or not entry.value.isdecimal() or len(entry.value) > 15 or int(entry.value) < 1024:
        return ""
    if entry.name.endswith(".ms"):
        return duration_text(int(entry.value))
    return size_text(int(entry.value)) if entry.name.endswith(".bytes") else ""


def _from(entry: ConfigEntry) -> Markup:
    return badge(source_text(entry.source), "good" if entry.source == ConfigSource.TOPIC else "plain")


def _default(entry: ConfigEntry) -> Content:
    """The value that the setting has where nobody sets it, if the broker tells."""
    known = [each.value for each in entry.synonyms if each.source == ConfigSource.DEFAULT]
    value = known[-1] if known else entry.value if entry.is_default else None
    return None if value is None else tag("div", code(_cut(value)), class_="content")


def _cut(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= limits.CONSOLE_CELL_CHARS else text[: limits.CONSOLE_CELL_CHARS] + "…"


def _words(entry: ConfigEntry) -> str:
    return f"{entry.name} {entry.value} {entry.documentation or ''}"
