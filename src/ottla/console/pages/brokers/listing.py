"""All brokers: their state, leaders, replicas and disks; what is wrong with partitions."""

from __future__ import annotations

from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content
from ottla.console.pages.brokers.parts import broker_tabs, disk_use, size_or_unknown, state_of
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import card, figure, figures, link, notice, told
from ottla.console.routing import page
from ottla.operations.cluster.view import BrokerView, ClusterView, look
from ottla.operations.doctor.check import some

_PROBLEMS = {
    "offline": "without a leader",
    "under_min_isr": "below min.insync.replicas",
    "under_replicated": "under-replicated",
}


@page("/brokers")
async def brokers(call: PageCall) -> Page:
    view = await call.access.aside(look)
    return Page(
        "Brokers",
        [
            broker_tabs("/brokers"),
            _figures(view),
            _failed_directories(view),
            card("Brokers", plain_table(_COLUMNS, view.brokers)),
            card("Partitions", _partitions(view)),
        ],
    )


def not_preferred(view: ClusterView) -> list[str]:
    """The partitions that another replica leads than the preferred one, which is alive."""
    alive = {each.id for each in view.brokers if not each.broker.is_fenced}
    return [str(each.at) for each in view.partitions if each.leader != each.target[0] and each.target[0] in alive]


def _figures(view: ClusterView) -> Content:
    up = sum(not each.broker.is_fenced for each in view.brokers)
    moving = sum(each.move is not None for each in view.partitions)
    return figures(
        figure("brokers up", f"{up} of {len(view.brokers)}", mood="good" if up == len(view.brokers) else "bad"),
        figure(link("controller", "/brokers/quorum"), f"node {view.quorum.leader_id}"),
        figure("partitions", f"{len(view.partitions):,}"),
        figure(link("moving", "/brokers/moves"), f"{moving:,}", mood="fair" if moving else "plain"),
    )


def _failed_directories(view: ClusterView) -> Content:
    failed = view.problems().get("failed_directories", ())
    return [notice(["log directory with errors: ", told(each)], "bad") for each in failed]


def _partitions(view: ClusterView) -> Content:
    problems = view.problems()
    said: list[Content] = [
        notice(
            [f"{len(problems[kind]):,} {text}: ", told(some(problems[kind]))],
            "bad" if kind != "under_replicated" else "fair",
        )
        for kind, text in _PROBLEMS.items()
        if kind in problems
    ]
    if not said:
        said.append(notice("All partitions have leaders, and all replicas are in sync.", "good"))
    elsewhere = not_preferred(view)
    if elsewhere:
        many = f"{len(elsewhere):,} partition{'' if len(elsewhere) == 1 else 's'}"
        lead = link("elect the preferred leaders", "/brokers/leaders")
        said.append(notice([many, " led by another than the preferred replica: ", lead], "plain"))
    return said


def _rack(row: BrokerView) -> Content:
    return told(row.broker.rack) if row.broker.rack else ""


_COLUMNS: tuple[Column[BrokerView], ...] = (
    Column("Broker", lambda row: link(str(row.id), f"/brokers/{row.id}"), is_number=True),
    Column("Address", lambda row: told(str(row.broker.address))),
    Column("Rack", _rack),
    Column("State", lambda row: state_of(is_fenced=row.broker.is_fenced)),
    Column("Leaders", lambda row: f"{row.leaders:,}", is_number=True),
    Column("Replicas", lambda row: f"{row.replicas:,}", is_number=True),
    Column("Log", lambda row: size_or_unknown(row.size_bytes), is_number=True),
    Column("Disk", lambda row: disk_use(row.disk_bytes, row.free_bytes)),
)
