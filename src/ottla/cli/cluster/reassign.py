"""`ottla cluster reassign`: carry out given moves, list those under way, and cancel them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.terminal.output import done, note, print_rows
from ottla.cli.terminal.plain import print_error
from ottla.client.admin.replicas import Reassignment
from ottla.cluster.balance.loads import BalancePlan, PartitionLoad, ReplicaMove, totals
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.throttle import take_off
from ottla.operations.cluster.view import ClusterView
from ottla.operations.errors import CommandError, WrongUsage

if TYPE_CHECKING:
    from ottla.client.admin import Admin

_FILE_HINT = 'it holds {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}'
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?(?:/s)?", re.IGNORECASE)


def targets(texts: Iterable[str], file: Path | None) -> dict[TopicPartition, tuple[int, ...]]:
    """The new replicas of partitions, from arguments and a file."""
    found: dict[TopicPartition, tuple[int, ...]] = {}
    if file is not None:
        try:
            for each in json.loads(file.read_text("utf-8"))["partitions"]:
                found[TopicPartition(each["topic"], int(each["partition"]))] = tuple(map(int, each["replicas"]))
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise CommandError(f"{file} is no reassignment: it is not text", _FILE_HINT) from None
        except json.JSONDecodeError as error:
            raise CommandError(f"{file} is no reassignment: it is not JSON: {error}", _FILE_HINT) from None
        except KeyError as error:
            raise CommandError(f"{file} is no reassignment: {error.args[0]!r} is missing", _FILE_HINT) from None
        except (ValueError, TypeError):
            raise CommandError(f"{file} is no reassignment", _FILE_HINT) from None
    for text in texts:
        place, equals, replicas = text.partition("=")
        topic, _, index = place.rpartition(":")
        try:
            found[TopicPartition(topic, int(index))] = tuple(int(each) for each in replicas.split(","))
        except ValueError:
            equals = ""
        if not equals or not topic:
            raise WrongUsage(f"{text!r} is not TOPIC:PARTITION=BROKER,BROKER…", "orders:0=1,2,3 for example")
    if not found:
        raise WrongUsage("say what is to move: TOPIC:PARTITION=1,2,3 or --file", "--list shows what moves now")
    return found


def plan(view: ClusterView, wanted: Mapping[TopicPartition, tuple[int, ...]]) -> BalancePlan:
    """The plan that gives partitions these replicas."""
    known = {each.at: each for each in view.partitions}
    for at, replicas in wanted.items():
        if at not in known:
            raise CommandError(f"there is no partition {at}", "`ottla topic list` shows what there is")
        if not replicas or len(set(replicas)) < len(replicas):
            raise CommandError(f"{at} cannot have the replicas {list(replicas)}: each broker once")
        strangers = [each for each in replicas if view.broker(each) is None]
        if strangers:
            raise CommandError(f"there is no broker {strangers[0]}", "`ottla cluster status` shows them")
    partitions = [PartitionLoad(each.at, each.target, each.size_bytes) for each in view.partitions]
    before = {each.at: each.replicas for each in partitions}
    after = {**before, **wanted}
    ids = [each.id for each in view.brokers]
    moves = tuple(
        ReplicaMove(at, before[at], replicas, known[at].size_bytes)
        for at, replicas in sorted(wanted.items())
        if replicas != before[at]
    )
    return BalancePlan(moves, totals(ids, partitions, before), totals(ids, partitions, after), ())


def show(moves: Iterable[Reassignment], *, as_json: bool) -> None:
    rows = [
        {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "replicas": list(each.replicas),
            "adding": list(each.adding),
            "removing": list(each.removing),
        }
        for each in moves
    ]
    print_rows(rows, ["topic", "partition", "replicas", "adding", "removing"], as_json=as_json, right=["partition"])


async def cancel(admin: Admin, wanted: list[TopicPartition] | None) -> bool:
    """Cancel moves, so that replicas stay where they were; whether all could be cancelled."""
    if wanted is None:
        wanted = [each.partition for each in await admin.replicas.reassignments()]
    if not wanted:
        note("Nothing moves.")
        return True
    outcomes = await admin.replicas.cancel_each(wanted)
    failed = {at: error for at, error in outcomes.failed.items() if not _is_over(error)}
    for at, error in failed.items():
        print_error(f"{at}: {error}")
    if len(failed) < len(wanted):
        done(f"cancelled {len(wanted) - len(failed)} moves")
    if not await admin.replicas.reassignments():
        await take_off(admin)
    return not failed


def _is_over(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def unthrottle(admin: Admin) -> None:
    """Remove the throttle of `--throttle` from all topics and brokers; throttles that other tools set stay."""
    found = await take_off(admin)
    if found.topics:
        done(f"took the throttle off {', '.join(found.topics)}")
    else:
        note("No command of `ottla cluster` has left a throttle.")
    for broker in found.brokers:
        note(f"broker {broker} is away and keeps it: the same command takes it off when the broker is back.")
    for each in found.others:
        note(f"{each} has a throttle that somebody else set: it stays. `ottla config set … --unset` takes it off.")


def parse_rate(text: str) -> int:
    """Read `50MiB`, `1.5 GB`, `1000`: bytes per second."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise WrongUsage(f"{text!r} is no rate", "50MiB means 50 MiB per second")
    step = 1024 if match[3] else 1000
    unit: int = step ** " kmgt".index(match[2].lower() or " ")
    rate = float(match[1]) * unit
    if rate < 1:
        raise WrongUsage(f"{text!r}: it has to be above 0", "1 is one byte; without a limit, do not give one")
    return round(rate)
