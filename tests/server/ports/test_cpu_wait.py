"""How long a thread has waited for a CPU."""

import hashlib
import os
import threading
import time

import pytest

from ottla.server.loop.cpu_waits import CpuWaits
from ottla.server.ports import cpu_wait


def test_a_thread_that_sleeps_waits_for_no_cpu() -> None:
    waits = CpuWaits(cpu_wait.waited_for_cpu_s)
    waits.since_last()
    begun_s = time.monotonic()
    time.sleep(0.2)
    assert 0 <= waits.since_last() < time.monotonic() - begun_s - 0.1


def test_threads_that_compete_for_the_cpus_wait() -> None:
    """Each thread is told its own time: computing and waiting together are as long as it took."""

    def compute() -> None:
        before_s, begun_s, cpu_s = cpu_wait.waited_for_cpu_s(), time.monotonic(), time.thread_time()
        data = bytes(1 << 20)
        while time.monotonic() < begun_s + 0.3:
            hashlib.sha256(data)  # lets other threads run
        took_s = time.monotonic() - begun_s
        found.append((took_s, time.thread_time() - cpu_s, cpu_wait.waited_for_cpu_s() - before_s))

    found: list[tuple[float, float, float]] = []
    threads = [threading.Thread(target=compute) for _ in range(4 * (os.cpu_count() or 1))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(cpu_s + waited_s <= took_s + 0.05 for took_s, cpu_s, waited_s in found)
    assert sum(waited_s for _, _, waited_s in found) > 0.1


def test_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_wait, "_PATH", "/nowhere")
    monkeypatch.setattr(cpu_wait, "_mine", cpu_wait._OfThread())
    assert cpu_wait.waited_for_cpu_s() == 0
