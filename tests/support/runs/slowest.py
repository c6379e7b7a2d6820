"""Print the files whose tests took longest at the end of a run, to show where `make test` spends its time."""

from collections import defaultdict

import pytest

SHOWN = 20
LEAST_S = 10.0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seconds: defaultdict[str, float] = defaultdict(float)
    tests: defaultdict[str, set[str]] = defaultdict(set)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                seconds[file] += report.duration
                tests[file].add(report.nodeid)
    slow = sorted((each for each in seconds.items() if each[1] >= LEAST_S), key=lambda each: -each[1])[:SHOWN]
    if slow:
        terminalreporter.section("slowest files")
        for file, took in slow:
            terminalreporter.write_line(f"{took:7.1f} s  {file} ({len(tests[file])} tests)")
