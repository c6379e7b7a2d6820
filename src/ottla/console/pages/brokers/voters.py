"""Letting a controller vote, and taking a vote away: first what it means for the quorum, then the form."""

from __future__ import annotations

from ottla.client.admin.voters import QuorumState, VoterEndpoint
from ottla.client.errors import ClientError
from ottla.client.options import parse_address
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.brokers.parts import BROKERS, QUORUM
from ottla.console.parts.forms import field, form
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import card, facts, notice
from ottla.console.refusals import RefusedRequest, WrongInput, typed_in
from ottla.console.routing import action, page
from ottla.model.errors import ApiError
from ottla.operations.cluster.view import quorum_of
from ottla.operations.cluster.voter_changes import (
    check_majority,
    hand_over,
    is_dynamic,
    let_vote,
    plan_leave,
    plan_new_voter,
)
from ottla.operations.errors import CommandError

FIXED = "The voters of this cluster are fixed in the property files of its nodes (controller.quorum.voters)."
HOW_DYNAMIC = "level 1 of the feature kraft.version (on the page Features) lets them change, once and for all"
_LISTENER = "CONTROLLER"


def change_path(node_id: int | str, what: str) -> str:
    """The address of a change: `add` or `remove`."""
    return path_to("brokers", "quorum", node_id, what)


@page("/brokers/quorum/{node}/add")
async def new_voter_page(call: PageCall) -> Page:
    return await _new_voter(call, TypedForm(call))


@action("/brokers/quorum/{node}/add")
async def add_voter(call: PageCall) -> Answer:
    node_id = _node_of(call)
    try:
        newcomer = await plan_new_voter(call.admin, node_id, _endpoints(call))
        await let_vote(call.admin, newcomer)
    except REFUSALS as error:
        return await _new_voter(call, TypedForm(call, error))
    return Redirect("/brokers/quorum", done=f"Node {node_id} votes")


@page("/brokers/quorum/{node}/remove")
async def leaving_voter_page(call: PageCall) -> Page:
    return await _leaving_voter(call, TypedForm(call))


@action("/brokers/quorum/{node}/remove")
async def remove_voter(call: PageCall) -> Answer:
    node_id = _node_of(call)
    try:
        if call.text("name") != str(node_id):
            raise WrongInput("the typed number is not that of the node", "nothing was changed", field="name")
        await hand_over(call.admin, await plan_leave(call.admin, node_id))
    except REFUSALS as error:
        return await _leaving_voter(call, TypedForm(call, error))
    return Redirect("/brokers/quorum", done=f"Node {node_id} no longer votes")


async def _new_voter(call: PageCall, typed: TypedForm) -> Page:
    node_id, quorum = _node_of(call), await quorum_of(call.admin)
    title = f"Let node {node_id} vote"
    problem = await _problem(call, quorum, node_id, votes=False)
    if problem is not None:
        return _page(title, typed, problem)
    place = await _place_of(call, node_id)
    known = "" if place is None else f"{place.host}:{place.port}"
    listener = (
        place.listener
        if place is not None
        else next((ends[0].listener for ends in quorum.endpoints.values() if ends), _LISTENER)
    )
    unknown = "Where it listens for other controllers is not known: a broker that is no controller cannot vote."
    entry = form(
        call,
        change_path(node_id, "add"),
        field("listen", "Where other voters reach it", known, hint="HOST:PORT", required=True, typed=typed),
        field("listener", "Name of that listener", listener, required=True, typed=typed),
        submit=title,
    )
    follower = next(each for each in quorum.observers if each.node_id == node_id)
    behind = max(0, _end_of(quorum) - follower.log_end_offset)
    lag = facts([("behind the leader", f"{behind:,} records of the metadata")])
    what = card("What happens", lag, _counts(quorum, len(quorum.voters) + 1), entry)
    return _page(title, typed, None if place else notice(unknown, "fair"), what)


async def _leaving_voter(call: PageCall, typed: TypedForm) -> Page:
    node_id, quorum = _node_of(call), await quorum_of(call.admin)
    title = f"Take the vote of node {node_id} away"
    problem = await _problem(call, quorum, node_id, votes=True)
    if problem is not None:
        return _page(title, typed, problem)
    leads = "It leads the quorum: another voter takes the lead then." if quorum.leader_id == node_id else None
    entry = form(
        call,
        change_path(node_id, "remove"),
        field("name", "Type the number of the node", required=True, typed=typed),
        submit=title,
        is_dangerous=True,
    )
    said = tag("p", "The node goes on as it is, and follows the quorum; it may be stopped then.")
    return _page(
        title,
        typed,
        notice(leads, "fair") if leads else None,
        card("What happens", _counts(quorum, len(quorum.voters) - 1), said, entry),
    )


def _page(title: str, typed: TypedForm, *content: Content) -> Page:
    return Page(title, [typed.said, *content], (BROKERS, QUORUM), typed.status)


def _node_of(call: PageCall) -> int:
    named = call.params["node"]
    if not (named.isascii() and named.isdecimal() and len(named) < 10):
        raise RefusedRequest(404, f"there is no node {named[:40]}")
    return int(named)


async def _problem(call: PageCall, quorum: QuorumState, node_id: int, *, votes: bool) -> Markup | None:
    """Why the change is not possible now; None if it is. Raises RefusedRequest if the node is not there."""
    voters, observers = ({each.node_id for each in some} for some in (quorum.voters, quorum.observers))
    if node_id not in voters | observers:
        raise RefusedRequest(404, f"node {node_id} does not take part in the quorum", "the page Quorum shows who does")
    if (node_id in voters) != votes:
        return notice(f"Node {node_id} {'does not vote' if votes else 'votes already'}.", "fair")
    if not await is_dynamic(call.admin):
        return notice(FIXED, "fair", HOW_DYNAMIC)
    if votes:
        try:
            check_majority(quorum, node_id)
        except CommandError as error:
            return notice(str(error), "bad", "let another node vote first, or start those that are down")
    return None


async def _place_of(call: PageCall, node_id: int) -> VoterEndpoint | None:
    """Where a controller listens, if a voter can be reached and tells."""
    try:
        places = await call.admin.voters.controllers()
    except (ApiError, ClientError):
        return None
    return next(iter(places.get(node_id, ())), None)


def _endpoints(call: PageCall) -> tuple[VoterEndpoint, ...]:
    with typed_in("listen"):
        host, port = parse_address(call.text("listen"))
    return (VoterEndpoint(call.text("listener"), host, port),)


def _counts(quorum: QuorumState, then: int) -> Content:
    now = len(quorum.voters)
    told_of = facts(
        [("voters", f"{now} now, {then} then"), ("of which may fail", f"{(now - 1) // 2} now, {(then - 1) // 2} then")]
    )
    even = f"{then} voters are no safer than {then - 1}: one more, or one less, is better."
    return [told_of, None if then % 2 else notice(even, "fair")]


def _end_of(quorum: QuorumState) -> int:
    return max((each.log_end_offset for each in quorum.voters), default=0)
