"""Reassignments that users ask for: the new replicas of partitions, and the plan that gives them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from ottla.cluster.balance.loads import BalancePlan, PartitionLoad, ReplicaMove, totals
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.view import ClusterView
from ottla.operations.errors import CommandError, WrongUsage

_FILE_HINT = 'it holds {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}'


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
