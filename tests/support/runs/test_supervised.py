"""A supervised command leaves no processes or files behind, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[3]

# Starts a process in its own session that ignores signals such as SIGTERM, and prints its id; a test appends more code.
PARENT = """
import os, signal, subprocess, sys, time
child = '''
import signal, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
'''
stubborn = subprocess.Popen([sys.executable, "-c", child], start_new_session=True, stdout=subprocess.PIPE)
stubborn.stdout.readline()
print(stubborn.pid, os.environ["TMPDIR"], flush=True)
"""


def started(what_then: str) -> tuple[subprocess.Popen[str], int, Path]:
    """The supervisor, the process that must not outlive it, and the directory of the run."""
    command = [sys.executable, "-m", "tests.support.runs.supervised", sys.executable, "-c", PARENT + what_then]
    supervisor = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    pid, directory = supervisor.stdout.readline().split()
    return supervisor, int(pid), Path(directory)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("what_then", "status"), [("sys.exit(0)", 0), ("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137)]
)
def test_nothing_outlives_a_command_that_ends(what_then: str, status: int) -> None:
    supervisor, stubborn, directory = started(what_then)
    _, errors = supervisor.communicate(timeout=60)
    assert supervisor.returncode == status
    assert is_gone(stubborn)
    assert directory.exists() == (status != 0), "failed tests leave their files for a look"
    assert (str(directory) in errors) == (status != 0)
    if directory.exists():
        directory.rmdir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_outlives_an_interruption(number: int) -> None:
    supervisor, stubborn, directory = started("time.sleep(600)")
    supervisor.send_signal(number)
    supervisor.communicate(timeout=60)
    assert supervisor.returncode == 128 + number
    assert is_gone(stubborn)
    assert not directory.exists()


def test_second_signal_ends_a_command_that_does_not_end() -> None:
    supervisor, stubborn, _ = started(
        "signal.signal(signal.SIGINT, lambda *_: print('heard', flush=True))\nwhile True: time.sleep(1)"
    )
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.stdout is not None
    until(lambda: supervisor.stdout.readline() if supervisor.stdout else "", lambda line: line == "heard\n")
    supervisor.send_signal(signal.SIGINT)
    supervisor.communicate(timeout=25)  # less than the time for cleaning up
    assert is_gone(stubborn)
