"""Measure what authorization costs on the produce path: the same requests to one node with the StandardAuthorizer and a
thousand ACLs, whose guard is in their way and taken out of it in turns; the CPU time of the broker for each request.

The smaller a request, the larger the share of authorization: one is as small as it gets, the other has some 64 KiB. The
ratio is the median of those of all pairs of measurements, one way right after the other.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench import probe
from bench.subject import run_time_s
from bench.switched import WAYS, Switched
from ottla.model.settings.authorizer import STANDARD_AUTHORIZER
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.security.create_acls import CreateAclsRequest

TOPIC = "authorized"
ACLS = 1_000
CREATE_ACLS = 3
TOPIC_RESOURCE, LITERAL, ALLOW, WRITE, DESCRIBE = 2, 3, 3, 4, 8
# ANONYMOUS may create the ACLs because no entry applies to the cluster; for the topic, the entries decide.
GUARDED = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
# records in a request → requests of one measurement, requests on the way at once
LOADS = {1: (2_000, 40), 600: (200, 8)}
PAIRS = (
    10  # measurements of a round, with and without: short, because a disk that is busy now and then spoils long ones
)
GOAL = 1.02

Samples = dict[str, dict[str, list[float]]]  # way → figure → one value a measurement


def authorization(directory: Path, rounds: int, say: Callable[[str], None]) -> Samples:
    found: Samples = {}
    with ExitStack() as started:
        node = Switched("guard", directory, GUARDED)
        node.launch()
        started.callback(node.stop)
        probe.until_acknowledged(node.bootstrap, TOPIC)
        _create_acls(node.bootstrap)
        for records, (count, at_once) in LOADS.items():
            for round_ in range(-1, rounds):
                say(f"authorization, {records} records a request, round {round_ + 1} of {rounds}")
                for pair in range(PAIRS):
                    for way in WAYS if pair % 2 else reversed(WAYS):
                        node.go(way)
                        cost_us = _produce(node, _request(records), count, at_once)
                        if round_ >= 0:
                            found.setdefault(way, {}).setdefault(_figure(records), []).append(cost_us)
    return found


def rows(found: Samples) -> list[tuple[str, float, float, float]]:
    """(name, µs without, µs with, ratio) of every load: medians."""
    if not found:
        return []
    measured = []
    for records in LOADS:
        without, with_ = (found[way][_figure(records)] for way in WAYS)
        ratio = statistics.median(one / other for one, other in zip(with_, without, strict=True))
        what = "one record" if records == 1 else f"{records} records of 100 bytes"
        median = statistics.median(without)
        measured.append((f"a Produce request with {what}", median, statistics.median(with_), ratio))
    return measured


def _figure(records: int) -> str:
    return f"cpu_us_{records}_records"


def _request(records: int) -> ProduceRequest:
    batch = build_batch([Record(at, 0, None, b"x" * 100, ()) for at in range(records)])
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=0, records=batch)
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data(name=TOPIC, partition_data=[part])])


def _produce(node: Switched, request: ProduceRequest, count: int, at_once: int) -> float:
    """Send the request many times over one connection; the broker's CPU µs for each."""
    with probe.Connection(node.bootstrap) as connection:
        answer = connection.ask(request, probe.PRODUCE)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
        begun_s = run_time_s(node.pids)
        connection.repeat(request, probe.PRODUCE, count, at_once)
        return (run_time_s(node.pids) - begun_s) / count * 1e6


def _create_acls(bootstrap: str) -> None:
    """Allow ANONYMOUS to write to the topic; all other entries are for other users and topics."""
    creation = CreateAclsRequest.AclCreation
    others = [(f"User:u{number}", f"t{number}") for number in range(ACLS - 2)]
    entries = [("User:ANONYMOUS", TOPIC, WRITE), ("User:ANONYMOUS", TOPIC, DESCRIBE)]
    request = CreateAclsRequest(
        creations=[
            creation(
                resource_type=TOPIC_RESOURCE,
                resource_name=topic,
                resource_pattern_type=LITERAL,
                principal=principal,
                host="*",
                operation=operation,
                permission_type=ALLOW,
            )
            for principal, topic, operation in [*entries, *((who, topic, WRITE) for who, topic in others)]
        ]
    )
    answer = probe.ask(bootstrap, request, CREATE_ACLS)
    assert not any(each.error_code for each in answer.results), answer.results[:3]
