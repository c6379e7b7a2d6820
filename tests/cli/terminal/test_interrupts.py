"""Ctrl-C where Python drops the KeyboardInterrupt: in the callback of a weakref, or in `__del__`."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.support.waiting import WAIT_S

# Hooks into the first import of the command line, as an interrupt at an unlucky moment would.
PROGRAM = """
import _imp, asyncio, os, signal, sys, threading, time, weakref

class Gone: pass

def in_callback(act):
    gone = Gone()
    kept = weakref.ref(gone, lambda _: act())
    del gone

class Deleted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

class AtImport:
    def find_spec(self, name, path, target=None):
        if name == "ottla.cli.app":
            sys.meta_path.remove(self)
            print("said before", flush=False)
            unlucky()

def unlucky():
    {}

sys.meta_path.insert(0, AtImport())
sys.argv = ["ottla", "--version"]
from ottla.__main__ import main
main()
"""


def interrupted(unlucky: str) -> tuple[int, str, str]:
    program = PROGRAM.format(unlucky.strip().replace("\n", "\n    "))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_S, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_process_ends_when_the_import_lock_is_never_given_back() -> None:
    """importlib takes this lock in a weakref's callback (`_get_module_lock`): an import in a thread would wait."""
    held = """
def act():
    _imp.acquire_lock()
    signal.raise_signal(signal.SIGINT)
in_callback(act)
thread = threading.Thread(target=lambda: __import__("wave"))
thread.start()
thread.join()
"""
    assert interrupted(held) == (130, "said before\n", "")


@pytest.mark.parametrize(
    "unlucky",
    [
        "in_callback(lambda: signal.raise_signal(signal.SIGINT))\nthreading.Event().wait()",
        "Deleted()\nthreading.Event().wait()",
        "Deleted()\nasyncio.run(asyncio.Event().wait())",
        "async def run():\n    Deleted()\n    await asyncio.Event().wait()\nasyncio.run(run())",
    ],
    ids=["callback", "del", "before asyncio", "in asyncio"],
)
def test_a_dropped_interrupt_comes_again(unlucky: str) -> None:
    assert interrupted(unlucky) == (130, "said before\n", "")


def test_other_failures_that_python_drops_are_told_as_before() -> None:
    code, out, err = interrupted("in_callback(lambda: 1 / 0)")
    assert code == 0 and out.startswith("said before\nottla ")
    assert "ZeroDivisionError" in err
