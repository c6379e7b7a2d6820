"""The requests of one client, live: each with its time, its size, and the errors in its answer, as the brokers see them
while somebody looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from ottla.client.admin.requests import ClientRequest, ClientRequests
from ottla.client.errors import UnsupportedApi
from ottla.client.outcomes import Outcomes
from ottla.console.answers import Fragment, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to, tag
from ottla.console.parts.forms import field, query_form
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.times import clock, ms_text
from ottla.console.parts.words import badge, card, figure, figures, link, live, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import page
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.operations.failures import message_of
from ottla.operations.formats import size_text

T = TypeVar("T")
_TITLE = "Requests of a client"
_TRAIL = (("Requests", "/requests"),)
_NEEDS_OTTLA = "The requests of one client are told by Ottla's brokers only: a real Kafka writes them to its logs."


class _Client(NamedTuple):
    client_id: str
    principal: str
    connections: int
    node_ids: tuple[int, ...]


@page("/requests/client")
async def requests_of_client(call: PageCall) -> Page:
    client_id, principal = _asked(call)
    try:
        clients, away = await _clients(call)
    except UnsupportedApi:
        return Page(_TITLE, notice(_NEEDS_OTTLA, "fair"), _TRAIL)
    form = query_form(
        "/requests/client",
        field("client_id", "Client id", client_id, options=sorted({each.client_id for each in clients})),
        field(
            "principal",
            "Principal",
            principal,
            hint="such as User:alice; either is enough",
            options=sorted({each.principal for each in clients}),
        ),
        submit="Watch",
        class_="form wide",
    )
    if not (client_id or principal):
        table = plain_table(_CLIENTS, clients[: limits.CONSOLE_ROWS_MAX], empty="no client is connected")
        return Page(_TITLE, [card("Client", form), away, card("Connected clients", table)], _TRAIL)
    path = path_to("requests", "client", "now", client_id=client_id or None, principal=principal or None)
    watched = live(path, limits.CONSOLE_REQUESTS_EVERY_S, await _content(call, client_id, principal))
    return Page(_TITLE, [card("Client", form), watched], (*_TRAIL, ("Clients", "/requests/client")))


@page("/requests/client/now")
async def requests_of_client_now(call: PageCall) -> Fragment:
    client_id, principal = _asked(call)
    if not (client_id or principal):
        raise WrongInput("the address names no client")
    return Fragment(await _content(call, client_id, principal))


def _asked(call: PageCall) -> tuple[str, str]:
    """The client id and the principal of the query."""
    return call.query.get("client_id", ""), call.query.get("principal", "").strip()


async def _clients(call: PageCall) -> tuple[list[_Client], Content]:
    """Return the clients of all brokers, and what has to be said of brokers that do not answer."""
    outcomes = await call.admin.requests.clients_each()
    connections: Counter[tuple[str, str]] = Counter()
    nodes: dict[tuple[str, str], set[int]] = {}
    for node_id, found in _answered(outcomes).items():
        for each in found:
            who = each.client_id, each.principal
            connections[who] += each.connections
            nodes.setdefault(who, set()).add(node_id)
    clients = [_Client(*who, count, tuple(sorted(nodes[who]))) for who, count in connections.items()]
    return sorted(clients), _away(outcomes.failed)


async def _content(call: PageCall, client_id: str, principal: str) -> Content:
    outcomes = await call.admin.requests.of_each(client_id or None, principal=principal or None)
    brokers = list(_answered(outcomes).values())
    rows = sorted((row for each in brokers for row in each.requests), key=lambda row: row.at_ms, reverse=True)
    table = plain_table(_COLUMNS, rows[: limits.CONSOLE_REQUESTS_SHOWN], empty="no request yet: the watch has begun")
    return [
        _away(outcomes.failed),
        _figures(brokers, rows),
        tag("p", _since(brokers), class_="note"),
        card("Requests", table),
    ]


def _figures(brokers: list[ClientRequests], rows: list[ClientRequest]) -> Content:
    failed = sum(bool(row.errors or row.outcome) for row in rows)
    slowest = max((row.total_ms for row in rows), default=0.0)
    errors = Counter(error for row in rows for error in row.errors)
    return [
        figures(
            figure("requests", f"{sum(each.count for each in brokers):,}"),
            figure(
                "with errors", f"{failed:,}", mood="fair" if failed else "good", note=f"of the latest {len(rows):,}"
            ),
            figure("the slowest", ms_text(slowest)),
        ),
        tag("p", [[_error(error), f" {count:,} "] for error, count in errors.most_common()]) if errors else None,
    ]


def _since(brokers: list[ClientRequests]) -> str:
    since_ms = min(each.since_ms for each in brokers)
    return (
        f"Watched since {clock(since_ms)} on {len(brokers)} broker{'s' if len(brokers) > 1 else ''}, newest first. "
        f"The brokers forget it {limits.REQUEST_WATCH_S} seconds after the last look."
    )


def _answered(outcomes: Outcomes[int, T]) -> dict[int, T]:
    """Return what the brokers told; raise if none did."""
    return outcomes.found or outcomes.all()


def _away(failed: Mapping[int, Exception]) -> Content:
    """Say which brokers did not answer."""
    return [
        notice(f"Broker {node_id} does not tell its requests: {message_of(error)}", "fair")
        for node_id, error in failed.items()
    ]


def _error(error: ErrorCode) -> Content:
    return badge(error.name, "bad")


def _result(row: ClientRequest) -> Content:
    if row.outcome:
        return badge(told(row.outcome), "fair")
    if row.errors:
        return [[_error(each), " "] for each in row.errors]
    return badge("ok", "good")


_COLUMNS: tuple[Column[ClientRequest], ...] = (
    Column("Time", lambda row: f"{clock(row.at_ms)}.{row.at_ms % 1000:03}"),
    Column("Request", lambda row: [told(row.api), " ", tag("small", f"v{row.version}")]),
    Column("Result", _result),
    Column("Took", lambda row: ms_text(row.total_ms), is_number=True),
    Column("Queue", lambda row: ms_text(row.queue_ms), is_number=True),
    Column("Local", lambda row: ms_text(row.local_ms), is_number=True),
    Column("Remote", lambda row: ms_text(row.remote_ms), is_number=True),
    Column("Size", lambda row: size_text(row.size_bytes), is_number=True),
    Column("Client", lambda row: told(row.client_id)),
    Column("Principal", lambda row: told(row.principal)),
    Column("Host", lambda row: told(row.host)),
    Column("Broker", lambda row: [str(row.node_id), " (forwarded)" if row.is_forwarded else None], is_number=True),
)
_CLIENTS: tuple[Column[_Client], ...] = (
    Column("Client id", lambda row: _link(row.client_id, path_to("requests", "client", client_id=row.client_id))),
    Column("Principal", lambda row: _link(row.principal, path_to("requests", "client", principal=row.principal))),
    Column("Connections", lambda row: f"{row.connections:,}", is_number=True),
    Column("Brokers", lambda row: ", ".join(map(str, row.node_ids))),
)


def _link(name: str, to: str) -> Content:
    return link(told(name), to) if name else "(none)"
