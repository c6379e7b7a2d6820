"""Explanations as text and as JSON."""

from __future__ import annotations

import json
from types import TracebackType
from typing import TYPE_CHECKING

from ottla.cli.terminal.output import literal, out, print_json_text, print_table, print_text
from ottla.client.explain.hot import advise
from ottla.client.explain.lag import explain_lag
from ottla.client.explain.timeline import timeline
from ottla.client.explain.words import rate, span
from ottla.operations.formats import size_text, time_text

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from ottla.client.explain.facts import GroupState, PartitionFacts
    from ottla.client.explain.hot import TopicHeat

_COLUMNS = ("partition", "committed", "end", "lag", "waiting", "written/s", "read/s", "member")
_RIGHT = _COLUMNS[1:-1]
NO_TIMELINE = "this broker does not remember why groups rebalance: only Ottla's do"


def show_group(group: GroupState, last: int) -> None:
    _head(group)
    print_table(_COLUMNS, [_row(each) for each in group.partitions], right=_RIGHT)
    print_text("")
    print_text("Lag")
    for verdict in explain_lag(group):
        print_text(f"* {verdict.summary}")
        for evidence in verdict.evidence:
            print_text(f"    {evidence}")
        for advice in verdict.advice:
            print_text(f"    -> {advice}")
    print_text("")
    print_text("Rebalances")
    if group.past is None:
        print_text(f"  {NO_TIMELINE}")
        return
    since = f"the coordinator, broker {group.past.node_id}, knows nothing from before {time_text(group.past.since_ms)}"
    print_text(f"  ({since})")
    for entry in timeline(group.past)[-last:] if last else ():
        print_text(f"  {time_text(entry.at_ms)}  {entry.text}")
        if entry.advice:
            print_text(f"    -> {entry.advice}")


def _head(group: GroupState) -> None:
    epoch = "" if group.epoch is None else f"  epoch {group.epoch}"
    members = f"  {len(group.members)} {'member' if len(group.members) == 1 else 'members'}"
    console = out()
    console.print(
        f"[bold]{literal(group.group_id)}[/bold]  {group.kind}  {group.state}{epoch}{members}"
        f"  [dim]watched for {span(group.window_s)}[/dim]"
    )


def _row(facts: PartitionFacts) -> list[object]:
    at = f"{facts.partition.topic}-{facts.partition.partition}"
    owner = None if facts.owner is None else facts.owner.client_id or facts.owner.member_id
    is_known = facts.exists and facts.has_leader and not facts.error
    return [
        at,
        facts.committed,
        facts.end if is_known else None,
        facts.records,
        None if facts.seconds is None else span(facts.seconds),
        _rounded(facts.produced_per_s),
        _rounded(facts.consumed_per_s),
        owner,
    ]


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 1)


def partition_json(facts: PartitionFacts) -> dict[str, object]:
    return {
        "topic": facts.partition.topic,
        "partition": facts.partition.partition,
        "committed": facts.committed,
        "end": facts.end if facts.exists and facts.has_leader else None,
        "lag": facts.records,
        "lag_seconds": None if facts.seconds is None else round(facts.seconds, 3),
        "written_per_second": _rounded(facts.produced_per_s),
        "read_per_second": _rounded(facts.consumed_per_s),
        "member": None if facts.owner is None else facts.owner.member_id,
    }


def _state_json(group: GroupState) -> dict[str, object]:
    return {
        "group": group.group_id,
        "type": group.kind,
        "state": group.state,
        "epoch": group.epoch,
        "members": len(group.members),
        "watched_seconds": round(group.window_s, 3),
        "partitions": [partition_json(each) for each in group.partitions],
    }


def group_json(group: GroupState, last: int) -> dict[str, object]:
    past = group.past
    return _state_json(group) | {
        "causes": [
            {
                "cause": each.cause.value,
                "summary": each.summary,
                "partitions": [f"{at.topic}-{at.partition}" for at in each.partitions],
                "evidence": list(each.evidence),
                "advice": list(each.advice),
            }
            for each in explain_lag(group)
        ],
        "coordinator": None if past is None else past.node_id,
        "remembered_since_ms": None if past is None else past.since_ms,
        "events": None
        if past is None
        else [
            {"at_ms": entry.at_ms, "kind": entry.kind, "text": entry.text, "advice": entry.advice or None}
            for entry in (timeline(past)[-last:] if last else ())
        ],
    }


class LagScreen:
    """Shows a group's lag again and again: in place on a terminal, below each other elsewhere."""

    def __init__(self, *, as_json: bool, live: bool) -> None:
        self._as_json = as_json
        self._live: Live | None = None
        if live and not as_json and out().is_terminal:
            from rich.live import Live

            self._live = Live(console=out(), auto_refresh=False)

    def __enter__(self) -> LagScreen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, group: GroupState) -> None:
        if self._as_json:
            print_json_text(json.dumps(_state_json(group), ensure_ascii=False))
            return
        if self._live is None:
            _head(group)
            print_table(_COLUMNS, [_row(each) for each in group.partitions], right=_RIGHT)
            return
        self._live.update(_table(group), refresh=True)


def _table(group: GroupState) -> Table:
    from rich.table import Table
    from rich.text import Text

    from ottla.cli.terminal.visible import visible

    lag = sum(each.lag for each in group.partitions)
    title = f"{group.group_id}  {group.kind}  {group.state}  lag {lag:,}"
    table = Table(title=Text(visible(title)), title_justify="left", header_style="bold cyan", box=None, pad_edge=False)
    for column in _COLUMNS:
        table.add_column(column, justify="right" if column in _RIGHT else "left")
    for each in group.partitions:
        table.add_row(*(Text("-" if cell is None else visible(str(cell))) for cell in _row(each)))
    return table


# --- topics


def show_heat(heat: TopicHeat) -> None:
    total = heat.records_per_s
    out().print(
        f"[bold]{literal(heat.topic)}[/bold]  {rate(total)}  [dim]watched for {span(heat.window_s)}, "
        f"{heat.sampled:,} of the last records sampled[/dim]"
    )
    records = sum(each.records for each in heat.partitions)
    print_table(
        ["partition", "records", "share", "size", "written/s", "of all"],
        [
            [
                each.partition,
                each.records,
                _percent(each.records, records),
                None if each.size_bytes is None else size_text(each.size_bytes),
                round(each.records_per_s, 1),
                _percent(each.records_per_s, total),
            ]
            for each in heat.partitions
        ],
        right=["partition", "records", "share", "size", "written/s", "of all"],
    )
    if heat.keys:
        print_text("")
        print_table(
            ["key", "records", "share"],
            [[key_text(each.key), each.records, f"{each.share:.1%}"] for each in heat.keys],
            right=["records", "share"],
        )
    print_text("")
    for line in advise(heat):
        print_text(f"-> {line}")


def _percent(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def key_text(key: bytes) -> str:
    """A key as text, or as hexadecimal digits if it is none."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
    return text if text.isprintable() else f"0x{key.hex()}"


def heat_json(heat: TopicHeat) -> dict[str, object]:
    return {
        "topic": heat.topic,
        "watched_seconds": round(heat.window_s, 3),
        "records_per_second": round(heat.records_per_s, 1),
        "bytes_per_second": None if heat.bytes_per_s is None else round(heat.bytes_per_s, 1),
        "partitions": [
            {
                "partition": each.partition,
                "records": each.records,
                "size_bytes": each.size_bytes,
                "records_per_second": round(each.records_per_s, 1),
            }
            for each in heat.partitions
        ],
        "sampled": heat.sampled,
        "without_key": heat.without_key,
        "keys": [
            {"key": key_text(each.key), "records": each.records, "share": round(each.share, 4)} for each in heat.keys
        ],
        "advice": advise(heat),
    }
