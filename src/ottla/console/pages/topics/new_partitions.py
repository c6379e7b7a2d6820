"""Adding partitions to a topic: first what it means for keys, then the form, which the brokers check."""

from __future__ import annotations

from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS, failed_notice, failure_of
from ottla.console.html import Content
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path, warn_of_internal
from ottla.console.pages.topics.seen import topics_seen
from ottla.console.parts.forms import check_box, field, form
from ottla.console.parts.words import card, notice
from ottla.console.routing import action, page
from ottla.model.limits import INT32_MAX

_MEANING = "Keys are distributed anew: the records that a key has already stay in their partition."
_CONSEQUENCE = (
    "The order of one key's records is lost where old and new ones are read together. Partitions cannot be removed."
)


@page("/topics/{topic}/partitions")
async def new_partitions_page(call: PageCall) -> Page:
    return await _page(call)


@action("/topics/{topic}/partitions")
async def add_partitions(call: PageCall) -> Answer:
    topic = topic_of(call)
    try:
        total = call.number("total", least=1, most=INT32_MAX)
        await call.admin.topics.add_partitions(topic, total, validate_only="check" in call.form)
    except REFUSALS as error:
        status, sentence, hint = failure_of(error, call)
        return await _page(call, failed_notice(sentence, hint), status)
    if "check" in call.form:
        return await _page(call, notice(f"The brokers would accept {total:,} partitions.", "good"))
    topics_seen(call.access).forget()
    return Redirect(topic_path(topic), done=f"Topic {topic} now has {total:,} partitions")


async def _page(call: PageCall, said: Content = None, status: int = 200) -> Page:
    topic = await call.admin.topics.describe(topic_of(call))
    content = form(
        call,
        topic_path(topic.name, "partitions"),
        field("total", "Partitions in all", call.form.get("total", ""), type_="number", required=True),
        check_box("check", "Only check it", is_checked="check" in call.form),
        submit="Add partitions",
    )
    return topic_page(
        topic.name,
        said,
        warn_of_internal(topic.name),
        notice(_MEANING, "fair", _CONSEQUENCE),
        card(f"It has {topic.partition_count:,} partitions", content),
        title="Add partitions",
        status=status,
    )
