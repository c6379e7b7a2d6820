"""A node with fast groups: heartbeat intervals, session timeouts and delays are as short as Kafka allows.

Clients of the newer protocols get their intervals from the broker, so the broker's settings decide how long a test
waits for a rebalance or for the end of a killed member's session.
"""

from pathlib import Path

from tests.support.processes.kafka import SINGLE_NODE, RealKafka
from tests.support.processes.node import OttlaNode

KINDS = ("consumer", "share", "streams")
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.share.min.record.lock.duration.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    **{f"group.{kind}.min.heartbeat.interval.ms": "200" for kind in KINDS},
    **{f"group.{kind}.heartbeat.interval.ms": "300" for kind in KINDS},
    **{f"group.{kind}.min.session.timeout.ms": "3000" for kind in KINDS},
    **{f"group.{kind}.session.timeout.ms": "6000" for kind in KINDS},
}


def brisk(against: str, directory: Path) -> OttlaNode | RealKafka:
    """A node of this kind, not started yet."""
    if against == "kafka":
        return RealKafka(directory, properties=QUICK)
    return OttlaNode(directory, properties=SINGLE_NODE | QUICK)
