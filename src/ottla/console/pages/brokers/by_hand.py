"""Moving one partition by hand: say which and where to, see what that does, carry it out as any other plan."""

from __future__ import annotations

import re

from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS
from ottla.console.html import Content, Markup, path_to
from ottla.console.pages.brokers.moving import ReplicaMoves
from ottla.console.pages.brokers.parts import BROKERS, BY_HAND, MOVES, disk_use, size_or_unknown, state_of
from ottla.console.pages.brokers.shown_plan import plan_shown
from ottla.console.pages.topics.frame import warn_of_internal
from ottla.console.parts.forms import field, query_form
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import badge, card, facts, link, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import page
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.cluster import reassignment
from ottla.operations.cluster.view import BrokerView, ClusterView, PartitionView, look
from ottla.operations.formats import size_text
from ottla.operations.threads import BlockingWork, in_thread

_BETWEEN = re.compile(r"[,\s]+")


@page(BY_HAND)
async def by_hand(call: PageCall) -> Page:
    view = await call.access.aside(look)
    typed = TypedForm(call, given=call.query)
    found, wanted = None, None
    try:
        if call.query.get("topic"):
            found = _partition(call, view)
        if found is not None and call.query.get("replicas"):
            wanted = _replicas(call.text("replicas"), view)
    except REFUSALS as error:
        typed = TypedForm(call, error, given=call.query)
    content = [
        typed.said,
        card("Which partition, and where to", _question(call, typed, found)),
        None if found is None else _now(found),
        None if found is None or wanted is None else await _preview(call, view, found, wanted),
        card("Brokers", plain_table(_columns(found), view.brokers)),
    ]
    return Page("Move a partition", content, (BROKERS, MOVES), typed.status)


def _question(call: PageCall, typed: TypedForm, found: PartitionView | None) -> Markup:
    target = "" if found is None else _listed(found.target)
    hint = "brokers by their number, the preferred leader first: 1, 2, 3; empty: where it is now"
    return query_form(
        BY_HAND,
        field("topic", "Topic", required=True, typed=typed),
        field("partition", "Partition", 0, type_="number", typed=typed),
        field("replicas", "New replicas", target, hint=hint, typed=typed if call.query.get("replicas") else None),
        submit="Show what that does",
    )


def _partition(call: PageCall, view: ClusterView) -> PartitionView:
    topic, number = call.text("topic"), call.number("partition", 0, most=limits.INT32_MAX)
    at = TopicPartition(topic, number)
    found = next((each for each in view.partitions if each.at == at), None)
    if found is not None:
        return found
    if any(each.at.topic == topic for each in view.partitions):
        raise WrongInput(f"topic {topic} has no partition {number}", field="partition")
    raise WrongInput(f"there is no topic {topic}", "the page Topics shows what there is", field="topic")


def _replicas(text: str, view: ClusterView) -> tuple[int, ...]:
    found: list[int] = []
    for each in _BETWEEN.split(text.strip(", \t\r\n")):
        broker = view.broker(int(each)) if each.isascii() and each.isdecimal() and len(each) < 10 else None
        if broker is None:
            raise WrongInput(f"there is no broker {each[:40]!r}", "the table below has the brokers", field="replicas")
        if broker.id in found:
            raise WrongInput(f"broker {broker.id} is named twice", "a broker has one replica", field="replicas")
        found.append(broker.id)
    return tuple(found)


def _now(found: PartitionView) -> Markup:
    pairs: list[tuple[Content, Content]] = [
        ("replicas", _listed(found.replicas)),
        ("leader", "none" if found.is_offline else found.leader),
        ("in sync", _listed(found.isr) or "none"),
        ("size", size_text(found.size_bytes)),
    ]
    if found.move is not None:
        pairs.append(("moving to", _listed(found.target)))
    return card(["Now: ", told(str(found.at))], facts(pairs))


async def _preview(call: PageCall, view: ClusterView, found: PartitionView, wanted: tuple[int, ...]) -> Content:
    plan = await in_thread(BlockingWork.rows, reassignment.plan, view, {found.at: wanted})
    kept = ReplicaMoves.of(call.access).keep(f"Moving {found.at} to {_listed(wanted)}", plan, plan.moves)
    warnings = _warnings(view, found, wanted) if plan.moves else []
    return [warn_of_internal(found.at.topic), warnings, plan_shown(call, kept, view)]


def _warnings(view: ClusterView, found: PartitionView, wanted: tuple[int, ...]) -> list[Markup]:
    """What a person might not have thought of."""
    said: list[Markup] = []
    if len(wanted) < found.min_isr:
        least = f"min.insync.replicas is {found.min_isr}"
        few = f"With {_counted(len(wanted))}, nothing can be written with acks=all: {least}."
        said.append(notice(few, "bad"))
    if len(wanted) != len(found.target):
        before = f"It has {_counted(len(found.target))} now, and would have {len(wanted)}."
        said.append(notice(before, "fair", "one lost disk loses its records" if len(wanted) == 1 else None))
    brokers = [each for number in wanted if (each := view.broker(number)) is not None]
    down = [each.id for each in brokers if each.broker.is_fenced]
    if down:
        said.append(notice(f"Of the new replicas {_listed(down)} are down: the move waits until they are up.", "bad"))
    racks = {each.broker.rack for each in brokers}
    if len(wanted) > 1 and len(racks) == 1 and len({each.broker.rack for each in view.brokers}) > 1:
        said.append(notice("All new replicas would be in one rack: without it there would be none.", "fair"))
    if found.is_offline and set(wanted) - set(found.replicas):
        said.append(notice("It has no leader: nothing is copied until a replica in sync is up.", "bad"))
    if found.move is not None:
        said.append(notice("It is moving: this move takes the place of that one.", "fair"))
    return said


def _listed(brokers: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, brokers))


def _counted(count: int) -> str:
    return f"{count} replica{'' if count == 1 else 's'}"


def _columns(found: PartitionView | None) -> list[Column[BrokerView]]:
    columns: list[Column[BrokerView]] = [
        Column("Broker", lambda row: link(row.id, path_to("brokers", row.id)), is_number=True),
        Column("Address", lambda row: told(str(row.broker.address))),
        Column("Rack", lambda row: told(row.broker.rack) if row.broker.rack else ""),
        Column("State", lambda row: state_of(is_fenced=row.broker.is_fenced)),
        Column("Replicas", lambda row: f"{row.replicas:,}", is_number=True),
        Column("Log", lambda row: size_or_unknown(row.size_bytes), is_number=True),
        Column("Disk", lambda row: disk_use(row.disk_bytes, row.free_bytes)),
    ]
    if found is not None:
        columns.append(Column("This partition", lambda row: _holds(row, found)))
    return columns


def _holds(row: BrokerView, found: PartitionView) -> Content:
    if row.id not in found.replicas:
        return None
    if row.id == found.leader:
        return badge("leader", "good")
    return badge("in sync", "good") if row.id in found.isr else badge("behind", "fair")
