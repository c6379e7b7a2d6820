"""A disk that is slow to read, or to sync, holds up those who need it and nobody else."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.talk import FETCH_VERSION, create, fetch_request, produce, values_of
from tests.support.raw import RawConnection
from tests.support.slow_disk import SlowDisk

from ottla.testing.broker import Broker

Factory = Callable[..., Broker]
DELAY_S = 0.5
VALUES = [b"%04d" % number * 5_000 for number in range(150)]  # 20 KB each, 3 MB in all


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    return SlowDisk(monkeypatch, DELAY_S)


@pytest.fixture
def broker(ottla_broker_factory: Factory, disk: SlowDisk) -> Broker:
    """With three segments of old records in the topic `slow`; whatever is read of them is slow."""
    broker = ottla_broker_factory()
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "slow", internal_segment_bytes=1_000_000)
        create(connection, "quick")
        for value in VALUES:
            assert produce(connection, "slow", [value])[0] == 0
    disk.slow_down(broker.data_dir / "slow-0")
    return broker


def read_all(bootstrap: str, topic: str, count: int, **how: Any) -> list[bytes]:
    found: list[bytes] = []
    with RawConnection(bootstrap) as connection:
        while len(found) < count:
            answer: Any = connection.call(fetch_request({(topic, 0): len(found)}, **how), FETCH_VERSION)
            values = values_of(answer)[topic, 0]
            assert values, "what is there is given, however long it takes to read it"
            found += values
    return found


def latencies_during(bootstrap: str, work: Callable[[], Any]) -> list[float]:
    """How long another client's produces and fetches take while `work` goes on."""
    taken: list[float] = []
    working = threading.Thread(target=work)
    working.start()
    with RawConnection(bootstrap) as connection:
        while working.is_alive():
            began = time.monotonic()
            _, offset = produce(connection, "quick", [b"v"])
            answer: Any = connection.call(fetch_request({("quick", 0): offset}), FETCH_VERSION)
            assert values_of(answer) == {("quick", 0): [b"v"]}
            taken.append(time.monotonic() - began)
    working.join()
    return sorted(taken)


@pytest.mark.parametrize("how", [{}, {"partition_max_bytes": 8_000, "isolation": 1}], ids=["sent", "read"])
def test_cold_records_hold_up_nobody_else(broker: Broker, disk: SlowDisk, how: dict[str, int]) -> None:
    found: list[bytes] = []
    taken = latencies_during(broker.bootstrap, lambda: found.extend(read_all(broker.bootstrap, "slow", 150, **how)))
    assert found == VALUES
    assert not disk.on_loops, disk.on_loops[0]
    assert disk.elsewhere >= 3
    assert taken[len(taken) * 9 // 10] < DELAY_S / 2
