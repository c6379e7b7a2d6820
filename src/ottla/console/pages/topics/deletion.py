"""Deleting a topic: what it would take with it, and a form that asks to type the topic's name."""

from __future__ import annotations

from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import tag
from ottla.console.pages.topics.figures import bytes_text, count_text, figures_of
from ottla.console.pages.topics.frame import TOPICS, topic_of, topic_page, topic_path, warn_of_internal
from ottla.console.pages.topics.seen import topics_seen
from ottla.console.parts.forms import field, form
from ottla.console.parts.words import card, code, facts, notice
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page


@page("/topics/{topic}/delete")
async def delete_topic_page(call: PageCall) -> Page:
    topic = await call.admin.topics.describe(topic_of(call))
    known = await figures_of(call.admin, [topic])
    told_of = facts(
        [
            ("Records", count_text(known.records(topic))),
            ("Size", bytes_text(known.size(topic))),
            ("Partitions", f"{topic.partition_count:,}"),
        ]
    )
    typed = form(
        call,
        topic_path(topic.name, "delete"),
        field("name", "Type the topic's name", required=True),
        submit="Delete the topic",
        is_dangerous=True,
    )
    return topic_page(
        topic.name,
        warn_of_internal(topic.name),
        notice("All records of the topic, its settings and its offsets in groups are deleted for good.", "bad"),
        card("What would be deleted", tag("p", code(topic.name)), told_of),
        card("Delete it", typed),
        title="Delete the topic",
    )


@action("/topics/{topic}/delete")
async def delete_topic(call: PageCall) -> Answer:
    topic = topic_of(call)
    check_typed(call, topic)
    await call.admin.topics.delete(topic)
    topics_seen(call.access).forget()
    return Redirect(TOPICS, done=f"Topic {topic} was deleted")


def check_typed(call: PageCall, topic: str) -> None:
    """Raise WrongInput unless the topic's name was typed."""
    if call.text("name") != topic:
        raise WrongInput("the name that was typed is not the topic's", "go back and type it as it is shown")
