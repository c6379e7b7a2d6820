"""The figures at the top of the overview, and the brokers with what each does."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.admin.voters import QuorumState
from ottla.console.html import Content, Markup
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.times import bytes_per_s, per_s, seconds_text
from ottla.console.parts.words import badge, figure, figures, link, told
from ottla.console.sampling.history import ClusterHistory
from ottla.operations.sampling.rates import Row

_UNKNOWN = "?"


def leading_figures(history: ClusterHistory) -> Content:
    """Brokers, quorum, partitions, and what flows."""
    last = history.last
    if last is None:
        return None
    now, offline, behind = last.now, last.offline, last.behind
    up = sum(not each.is_fenced for each in now.brokers)
    note = [f"{offline:,} without leader"] if offline else []
    note += [f"{behind:,} under-replicated"] if behind else []
    note += [f"{len(last.moving):,} moving"] if last.moving else []
    moment = history.moments[-1] if history.moments else None
    return figures(
        figure(
            link("brokers up", "/brokers"),
            f"{up} of {len(now.brokers)}",
            mood="good" if up == len(now.brokers) else "bad",
            note=None if up == len(now.brokers) else _named([each.node_id for each in now.brokers if each.is_fenced]),
        ),
        _controller(last.quorum),
        figure(
            link("partitions", "/topics"),
            f"{last.partitions:,}",
            mood="bad" if offline else "fair" if behind else "good",
            note=", ".join(note) or "all in sync",
        ),
        figure("written", _flow(None if moment is None else moment.bytes_in)),
        figure("read", _flow(None if moment is None else moment.bytes_out)),
        figure(link("requests", "/requests"), _rate(None if moment is None else moment.requests)),
        _lag(last.groups),
    )


def broker_states(history: ClusterHistory) -> Markup:
    """A row for each broker. The rates are those of the last two samples."""
    found = () if history.last is None else history.last.brokers
    return plain_table(_STATES + _RATES if history.has_metrics else _STATES, found)


def _controller(quorum: QuorumState | None) -> Markup:
    if quorum is None or quorum.leader_id < 0:
        return figure(link("controller", "/brokers/quorum"), "none", mood="bad", note="nobody leads the metadata")
    return figure(
        link("controller", "/brokers/quorum"),
        f"node {quorum.leader_id}",
        mood="good",
        note=f"{len(quorum.voters)} voter{'' if len(quorum.voters) == 1 else 's'}, epoch {quorum.leader_epoch}",
    )


def _lag(groups: Iterable[Row]) -> Markup:
    known = [(seconds, str(each["group"])) for each in groups if (seconds := _cell(each, "seconds")) is not None]
    if not known:
        return figure(link("worst lag", "/groups"), "none")
    seconds, group = max(known)
    return figure(link("worst lag", "/groups"), seconds_text(seconds), note=told(group) if seconds else None)


def _named(ids: list[int]) -> str:
    return f"broker {', '.join(map(str, ids))} is down" if len(ids) == 1 else f"{', '.join(map(str, ids))} are down"


def _flow(value: float | None) -> str:
    return _UNKNOWN if value is None else bytes_per_s(value)


def _rate(value: float | None) -> str:
    return _UNKNOWN if value is None else per_s(value)


def _cell(row: Row, name: str) -> float | None:
    cell = row.get(name)
    return float(cell) if isinstance(cell, int | float) else None


def _number(row: Row, name: str, unit: str = "") -> str:
    value = _cell(row, name)
    return "" if value is None else f"{value:,.0f}{unit}"


def _out_of_sync(row: Row) -> Content:
    value = _cell(row, "out of sync") or 0
    return badge(f"{value:.0f}", "fair") if value else "0"


_STATES: tuple[Column[Row], ...] = (
    Column("Broker", lambda row: link(str(row["broker"]), f"/brokers/{row['broker']}"), is_number=True),
    Column("Address", lambda row: told(str(row["address"]))),
    Column("State", lambda row: badge("up", "good") if row["state"] == "up" else badge("down", "bad")),
    Column("Leaders", lambda row: _number(row, "leaders"), is_number=True),
    Column("Out of sync", _out_of_sync, is_number=True),
)
_RATES: tuple[Column[Row], ...] = (
    Column("Written", lambda row: _flow(_cell(row, "in/s")), is_number=True),
    Column("Read", lambda row: _flow(_cell(row, "out/s")), is_number=True),
    Column("Requests", lambda row: _rate(_cell(row, "req/s")), is_number=True),
    Column("Idle", lambda row: _number(row, "idle", " %"), is_number=True),
    Column("Connections", lambda row: _number(row, "conns"), is_number=True),
)
