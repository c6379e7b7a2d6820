"""Ottla's client and other clients against one broker: each in a process of its own, one after the other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

from bench import probe
from bench.clients.programs import PARTITIONS, PROGRAMS, WARM_UP
from bench.subject import Subject
from bench.workloads import Figures

PRODUCED = "clients-produced"
CONSUMED = "clients-consumed"
ARROW_TIMES = 5  # programs without an object per record get so many times more records


def clients(subject: Subject, records: int, say: Callable[[str], None]) -> Iterator[tuple[str, Figures]]:
    """The figures of every program, one after the other. Consumers read what Ottla's own producer wrote."""
    for topic in (PRODUCED, CONSUMED):
        probe.ensure_topic(subject.bootstrap, topic, PARTITIONS)
    _run(subject, "ottla_post", CONSUMED, ARROW_TIMES * records)
    for name in PROGRAMS:
        say(f"client {name}")
        is_producer = name.endswith(("post", "enqueue", "send"))
        many = name in ("ottla_arrow", "confluent_consume")
        count = ARROW_TIMES * records + WARM_UP if many else records
        yield name, _run(subject, name, PRODUCED if is_producer else CONSUMED, count)


def _run(subject: Subject, name: str, topic: str, count: int) -> Figures:
    done = subprocess.run(
        [sys.executable, "-m", "bench.clients.programs", name, subject.bootstrap, topic, str(count)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    found: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return found
