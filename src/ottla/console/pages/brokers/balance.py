"""Balancing and draining: the plan is shown first; it is carried out, throttled, when the user says so."""

from __future__ import annotations

from ottla.client.admin import Admin
from ottla.cluster.balance.loads import BalancePlan, ReplicaMove
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import path_to, tag
from ottla.console.pages.brokers.moving import ReplicaMoves
from ottla.console.pages.brokers.one import broker_of
from ottla.console.pages.brokers.parts import BROKERS, broker_tabs
from ottla.console.pages.brokers.shown_plan import plan_shown
from ottla.console.parts.forms import check_box, query_form
from ottla.console.parts.words import card
from ottla.console.routing import action, page
from ottla.model import limits
from ottla.operations.cluster.moves import AT_ONCE
from ottla.operations.cluster.plan import drain_plan, plan_for, unfinished
from ottla.operations.cluster.view import ClusterView, look, rates
from ottla.operations.formats import parse_rate


@page("/brokers/balance")
async def balance(call: PageCall) -> Page:
    leaders_only, is_measured = "leaders_only" in call.query, "measured" in call.query

    async def planned(admin: Admin) -> tuple[ClusterView, BalancePlan, tuple[ReplicaMove, ...]]:
        view = await look(admin)
        measured = await rates(admin, view, limits.CONSOLE_MEASURED_S) if is_measured else None
        plan = plan_for(view, rates=measured, copies=not leaders_only)
        return view, plan, unfinished(view, plan)

    view, plan, moves = await call.access.aside(planned)
    kept = ReplicaMoves.of(call.access).keep("Balancing", plan, moves)
    question = query_form(
        "/brokers/balance",
        check_box("leaders_only", "Change leaders only, copy nothing", is_checked=leaders_only),
        check_box(
            "measured",
            f"Measure the traffic for {limits.CONSOLE_MEASURED_S} s and balance it, too",
            is_checked=is_measured,
        ),
        submit="Plan anew",
    )
    about = "Partitions are spread evenly over the brokers: by racks, replicas, bytes and leaders."
    asked = card("What to balance", tag("p", about), question)
    return Page("Balance", [broker_tabs("/brokers/balance"), asked, plan_shown(call, kept, view)])


@page("/brokers/{broker}/drain")
async def drain(call: PageCall) -> Page:
    found = await broker_of(call)
    leaders_only = "leaders_only" in call.query

    async def planned(admin: Admin) -> tuple[ClusterView, BalancePlan]:
        view = await look(admin)
        return view, drain_plan(view, found.node_id, leaders_only=leaders_only)

    view, plan = await call.access.aside(planned)
    title = f"Moving {'the leaders' if leaders_only else 'everything'} off broker {found.node_id}"
    kept = ReplicaMoves.of(call.access).keep(title, plan, plan.moves)
    trail = (BROKERS, (f"Broker {found.node_id}", path_to("brokers", found.node_id)))
    return Page(title, plan_shown(call, kept, view), trail=trail)


@action("/brokers/balance/apply")
async def apply(call: PageCall) -> Answer:
    moves = ReplicaMoves.of(call.access)
    plan = moves.plan(call.number("plan"))
    throttle = call.text("throttle", "")
    rate = parse_rate(throttle) if throttle else None
    moves.begin(plan, rate, call.number("at_once", AT_ONCE, least=1, most=limits.CONSOLE_MOVES_AT_ONCE_MAX))
    return Redirect("/brokers/moves", done=f"{plan.title} has begun")
