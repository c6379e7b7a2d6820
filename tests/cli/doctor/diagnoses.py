"""Run `ottla doctor` and read what it found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.cli.conftest import invoke

LEVELS = {0: "fine", 1: "problem", 3: "warning"}


class Told:
    """What one run told. The exit status fits the worst finding, and each says why, and what to do."""

    def __init__(self, *words: str, env: Mapping[str, str] | None = None) -> None:
        run = invoke("doctor", *words, "--json", env=dict(env or {}))
        found = run.json
        self.findings: list[dict[str, Any]] = found["findings"]
        self.fine = {each["check"] for each in found["fine"]}
        self.not_checked: dict[str, str] = {each["check"]: each["reason"] for each in found["not_checked"]}
        assert found["level"] == LEVELS[run.code], run.err
        assert all(each["what"] and each["why"] and each["do"] for each in self.findings)
        order = [("problem", "warning").index(each["level"]) for each in self.findings]
        assert order == sorted(order)

    @property
    def checks(self) -> set[str]:
        return {each["check"] for each in self.findings}

    def level(self, check: str) -> str | None:
        """The level of what this check found; None if it found nothing."""
        levels = {each["level"] for each in self.findings if each["check"] == check}
        assert levels or check in self.fine, f"{check} was not made: {self.not_checked.get(check)}"
        return min(levels, default=None)  # of both, a problem

    def what(self, check: str) -> str:
        return " | ".join(each["what"] for each in self.findings if each["check"] == check)

    def do(self, check: str) -> str:
        return " | ".join(each["do"] for each in self.findings if each["check"] == check)
