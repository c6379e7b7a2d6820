"""Run the tests, and a few that failed among many others once more, alone: `python -m tests.support.runs.whole`.

`make test` runs the tests this way, on machines that may be busy. A test that passes when it is repeated is unsteady,
which is a defect of the test or of Ottla: it is named at the end of the run, below its failure. The run is good if it
has at most `REPEATED_MAX` of them. Nothing is repeated where a single failure is a finding (`FINDINGS`: lost records,
seeds, stalls), nor after a crash of a worker or an error of an import.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence

import pytest

REPEATED_MAX = 3
FINDINGS = ("tests/faults/", "tests/sim/", "tests/stalls/", "tests/chaos/", "tests/torture/", "tests/test_")


class Failures:
    """A plugin that notes which tests failed, and whether something other than a test did."""

    def __init__(self) -> None:
        self.tests: dict[str, None] = {}  # in the order of their failures
        self.others = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tests[report.nodeid] = None
            if report.when not in ("setup", "call", "teardown"):  # xdist's report of a worker that died
                self.others = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.others = self.others or report.failed


def may_repeat(tests: Iterable[str]) -> bool:
    tests = list(tests)
    return 0 < len(tests) <= REPEATED_MAX and not any(each.startswith(FINDINGS) for each in tests)


def main(arguments: Sequence[str]) -> int:
    failures = Failures()
    status = int(pytest.main([*arguments], plugins=[failures]))
    if status != pytest.ExitCode.TESTS_FAILED or failures.others or not may_repeat(failures.tests):
        return status
    print(f"\nonce more, alone: {', '.join(failures.tests)}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:xdist", *failures.tests]).returncode
    if again == 0:
        print("UNSTEADY, and so defects to look for: " + ", ".join(failures.tests), flush=True)
    return again


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
