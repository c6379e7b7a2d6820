"""Creating a topic. The brokers check what was typed; what they refuse is said above the form, which keeps it."""

from __future__ import annotations

from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS, failed_notice, failure_of
from ottla.console.html import Content
from ottla.console.pages.topics.frame import NEW, TOPICS, topic_path
from ottla.console.pages.topics.seen import topics_seen
from ottla.console.parts.forms import area, check_box, choice, field, form
from ottla.console.parts.words import card, notice
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.model.limits import INT16_MAX, INT32_MAX

_BROKER_DEFAULT = -1
_POLICIES = (
    ("", "the brokers' default"),
    ("delete", "delete: old records go by time or size"),
    ("compact", "compact: the last record of each key stays"),
    ("compact,delete", "compact,delete: both"),
)


@page("/topics/+new")
async def new_topic_page(call: PageCall) -> Page:
    return _form(call)


@action("/topics/+new")
async def new_topic(call: PageCall) -> Answer:
    try:
        name = call.text("name")
        made = await call.admin.topics.create(
            name,
            call.number("partitions", _BROKER_DEFAULT, least=1, most=INT32_MAX),
            call.number("replicas", _BROKER_DEFAULT, least=1, most=INT16_MAX),
            _settings(call),
            validate_only="check" in call.form,
        )
    except REFUSALS as error:
        status, sentence, hint = failure_of(error, call)
        return _form(call, failed_notice(sentence, hint), status)
    if "check" in call.form:
        said = (
            f"The brokers would create it with {made.partitions} partitions, {made.replication_factor} replicas each."
        )
        return _form(call, notice(said, "good"))
    topics_seen(call.access).forget()
    return Redirect(topic_path(name), done=f"Topic {name} was created")


def _settings(call: PageCall) -> dict[str, str]:
    """The settings of the form; a line of the field for others is NAME=VALUE."""
    found = {name: call.text(name, "") for name in ("cleanup.policy", "retention.ms", "min.insync.replicas")}
    for line in call.form.get("settings", "").splitlines():
        if not line.strip():
            continue
        name, is_pair, value = line.partition("=")
        if not is_pair or not name.strip():
            raise WrongInput(f"a setting is NAME=VALUE, not {line[:80]!r}")
        found[name.strip()] = value.strip()
    return {name: value for name, value in found.items() if value}


def _form(call: PageCall, said: Content = None, status: int = 200) -> Page:
    def typed(name: str) -> str:
        return call.form.get(name, "")

    hint = "1 to 249 letters, digits, dots, underscores and hyphens"
    content = form(
        call,
        NEW,
        field("name", "Name", typed("name"), required=True, hint=hint),
        field("partitions", "Partitions", typed("partitions"), hint="empty: the brokers' default"),
        field("replicas", "Replicas of each partition", typed("replicas"), hint="empty: the brokers' default"),
        choice("cleanup.policy", "What happens to old records", _POLICIES, typed("cleanup.policy")),
        field("retention.ms", "Retention in milliseconds", typed("retention.ms"), hint="-1: for ever"),
        field("min.insync.replicas", "Replicas that must have a record with acks=all", typed("min.insync.replicas")),
        area(
            "settings", "Other settings", typed("settings"), rows=3, hint="a line for each: max.message.bytes=2000000"
        ),
        check_box(
            "check", "Only check it", is_checked="check" in call.form, hint="The brokers say what they would do."
        ),
        submit="Create",
    )
    return Page("Create a topic", [said, card("A new topic", content)], (("Topics", TOPICS),), status)
