"""`ottla share` and `ottla consume --group`: what they print is dealt with, as far as they were told so."""

from collections.abc import Callable

import pytest
from tests.cli.conftest import Run

from ottla.cli.records import group_reading as reading
from ottla.client.blocking.blocking import Blocking
from ottla.testing.broker import EmbeddedBroker

Ottla = Callable[..., Run]


@pytest.fixture
def ottla_broker(ottla_broker_factory: Callable[..., EmbeddedBroker]) -> EmbeddedBroker:
    """One whose members do not wait five seconds for their partitions."""
    beats = ("group.share.heartbeat.interval.ms", "group.share.min.heartbeat.interval.ms")
    return ottla_broker_factory(**dict.fromkeys(beats, 100), **{"group.initial.rebalance.delay.ms": 0})


@pytest.fixture
def jobs(ottla_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> EmbeddedBroker:
    """A topic with six records."""
    monkeypatch.setattr(reading, "IDLE_MS", 1_000)
    with Blocking(ottla_broker.bootstrap) as client:
        for number in range(6):
            client.post("jobs", b"%d" % number, partition=0)
    return ottla_broker


def test_taking_from_a_queue(ottla: Ottla, jobs: EmbeddedBroker) -> None:
    consume = ("share", "consume", "jobs", "--group", "work", "--format", "raw")
    looked = ottla(*consume, "--from-beginning", "--release").lines
    assert looked == ["0", "1", "2", "3", "4", "5"]
    assert ottla(*consume, "--max", "2").lines == ["0", "1"], "they were given back"
    assert ottla(*consume, "--reject", "--max", "1").lines == ["2"]
    assert ottla(*consume, "--accept").lines == ["3", "4", "5"]
    assert ottla(*consume).lines == []
    refused = ottla(*consume, "--accept", "--reject", code=2)
    assert "only one of" in refused.err


def test_an_acknowledgement_that_is_refused(ottla: Ottla, jobs: EmbeddedBroker) -> None:
    """The dead-letter topic collides with another one, so it cannot be created, and nothing can be rejected."""
    ottla("topic", "create", "buried.jobs")
    ottla("config", "set", "group", "work", "ottla.share.dlq.topic=buried_jobs")
    consume = ("share", "consume", "jobs", "--group", "work", "--format", "raw")
    refused = ottla(*consume, "--from-beginning", "--reject", "--max", "2", code=1)
    assert refused.lines == ["0", "1"]
    assert "error: the broker refused to reject 2 of the records: jobs-0: INVALID_TOPIC_EXCEPTION" in refused.err
    assert "hint: the group delivers them again" in refused.err
    assert ottla(*consume, "--accept").lines == ["0", "1", "2", "3", "4", "5"]


def test_looking_moving_and_deleting(ottla: Ottla, jobs: EmbeddedBroker) -> None:
    ottla("share", "consume", "jobs", "--group", "work", "--from-beginning", "-n", "4")
    ottla("consume", "jobs", "--group", "readers", "--from-beginning")
    assert [each["group"] for each in ottla("share", "list", "--json").json] == ["work"]
    shown = ottla("share", "describe", "work", "--json").json
    assert (shown["type"], shown["state"], shown["members"]) == ("share", "Empty", [])
    ((start, row),) = [(each.pop("start"), each) for each in shown["partitions"]]
    assert row == {"topic": "jobs", "partition": 0, "lag": 2, "members": []}
    assert start <= 4  # it moves with the next change
    lags = {each["group"]: each["lag"] for each in ottla("group", "list", "--lag", "--json").json}
    assert lags == {"readers": 0, "work": 2}
    columns, cells = ottla("share", "describe", "work").lines[1:]
    assert columns == "topic\tpartition\tstart\tlag\tmembers" and cells == f"jobs\t0\t{start}\t2\t"
    moved = ottla("share", "reset-offsets", "work", "--topic", "jobs", "--to", "1", "--execute", "--json").json
    assert [(each["partition"], each["to"]) for each in moved] == [(0, 1)]
    assert ottla("share", "consume", "jobs", "-g", "work", "-F", "raw").lines == ["1", "2", "3", "4", "5"]
    ottla("share", "delete", "work")
    assert ottla("share", "list", "--json").json == []


def test_consuming_as_a_member(ottla: Ottla, jobs: EmbeddedBroker) -> None:
    consume = ("consume", "jobs", "--group", "readers", "--format", "raw")
    assert ottla(*consume, "--from-beginning", "--max", "2").lines == ["0", "1"]
    assert ottla(*consume).lines == ["2", "3", "4", "5"], "from where the group left off"
    with Blocking(jobs.bootstrap) as client:
        ((_, place),) = client.admin.groups.offsets("readers").items()
    assert place.offset == 6
    assert "--group goes with" in ottla(*consume, "--partition", "0", code=2).err
    assert "there is no topic" in ottla("consume", "missing", "-g", "readers", code=1).err
    assert "there is no topic" in ottla("share", "consume", "missing", "-g", "work", code=1).err
