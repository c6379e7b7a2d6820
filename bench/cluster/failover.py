"""kill -9 under load: how long until writes with acks=all succeed again, on every partition.

A Java producer with default settings writes steadily to every partition of a topic of three replicas. A trial kills a
node, waits until each partition has acknowledged a record that was sent after the kill, restarts the node and waits
until all its replicas are in sync, so that the next trial begins with a complete cluster.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable

from tests.support.java.programs import CLASSPATH_431, command
from tests.support.processes.clusters import ProcessCluster

from bench.cluster.subjects import REPLICATION_FACTOR, Three
from bench.cluster.whole import create, until_in_sync
from bench.workloads import Figures

TOPIC = "failover"
PARTITIONS = 6
RECORDS_PER_S = 300
WAIT_S = 120.0


class SteadyLoad:
    """The producer, and for each partition when a record sent after `mark` was last acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        arguments = (bootstrap, TOPIC, str(PARTITIONS), str(RECORDS_PER_S))
        self._process = subprocess.Popen(
            command("Steady", *arguments, classpath=CLASSPATH_431),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lock = threading.Lock()
        self._mark_ms = 0
        self._recovered_ms: dict[int, int] = {}
        self.errors: list[str] = []
        self.acknowledged = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            partition, sent_ms, answered_ms, error = line.split()
            with self._lock:
                if error != "-":
                    self.errors.append(error)
                    continue
                self.acknowledged += 1
                if self._mark_ms and int(sent_ms) > self._mark_ms:
                    self._recovered_ms.setdefault(int(partition), int(answered_ms))

    def mark(self) -> None:
        """From now on, the acknowledgement of a record that is sent later shows that its partition works."""
        with self._lock:
            self._mark_ms = int(time.time() * 1000)
            self._recovered_ms.clear()

    def recovery_ms(self, timeout_s: float = WAIT_S) -> float:
        """The time from the mark until all partitions work."""
        deadline = time.monotonic() + timeout_s
        while True:
            with self._lock:
                if len(self._recovered_ms) == PARTITIONS:
                    return float(max(self._recovered_ms.values()) - self._mark_ms)
            if time.monotonic() > deadline:
                missing = sorted(set(range(PARTITIONS)) - set(self._recovered_ms))
                raise TimeoutError(f"partitions {missing} take no records, errors: {self.errors[-3:]}")
            time.sleep(0.005)

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._reader.join(10)


def victim_of(cluster: ProcessCluster, controller: bool) -> int:
    """The active controller, or a broker that is not; each leads some of the partitions."""
    active = cluster.controller()
    return active if controller else next(id for id in cluster.ids if id != active)


def trial(subject: Three, load: SteadyLoad, controller: bool) -> float:
    cluster = subject.cluster
    victim = victim_of(cluster, controller)
    load.mark()
    cluster.kill(victim)
    recovery_ms = load.recovery_ms()
    cluster.start_node(victim)
    return recovery_ms


def prepare(subject: Three) -> SteadyLoad:
    create(subject.cluster, [TOPIC], PARTITIONS, REPLICATION_FACTOR)
    until_in_sync(subject.cluster, [TOPIC], PARTITIONS)
    load = SteadyLoad(subject.bootstrap)
    load.mark()
    load.recovery_ms()  # wait until the load runs
    return load


def measure(
    subject: Three, trials: int, say: Callable[[str], None], note: Callable[[str, Three, Figures], None]
) -> None:
    load = prepare(subject)
    try:
        for number in range(trials):
            for controller in (False, True):
                workload = "kill_controller" if controller else "kill_leader"
                say(f"{workload} of {subject.name}, trial {number + 1} of {trials}")
                settle(subject)
                note(workload, subject, {"recovery_ms": trial(subject, load, controller)})
        assert not load.errors, load.errors[:3]
    finally:
        load.stop()


def settle(subject: Three) -> None:
    until_in_sync(subject.cluster, [TOPIC], PARTITIONS, preferred=True)
    time.sleep(0.5)
