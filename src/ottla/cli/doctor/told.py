"""Show what an examination found, for people and for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.cli.terminal.output import done, note, out, print_text
from ottla.cli.terminal.visible import visible
from ottla.operations.doctor.check import HealthLevel

if TYPE_CHECKING:
    from ottla.operations.doctor.examination import Examination

_COLOURS = {HealthLevel.WARNING: "yellow", HealthLevel.PROBLEM: "bold red"}
_INDENT = " " * 9


def show(examination: Examination, *, verbose: bool) -> None:
    """Print findings on stdout, the worst first, and a summary on stderr."""
    console = out()
    for each in examination.sorted():
        console.print(f"[{_COLOURS[each.level]}]{each.level.name.lower():9}[/]", end="")
        for line in (f"{each.what} ({each.check})", f"{_INDENT}why: {each.why}", f"{_INDENT}do:  {each.do}"):
            console.print(visible(line) if console.is_terminal else line, markup=False)
    if verbose:
        for check, subject in examination.fine:
            print_text(f"fine     {subject}: {check}")
        for left in examination.unmade:
            print_text(f"unseen   {left.subject}: {left.check}: {left.reason}")
    problems = sum(each.level is HealthLevel.PROBLEM for each in examination.found)
    warnings = len(examination.found) - problems
    unmade = len(examination.unmade)
    rest = f"; {_counted(unmade, 'check')} could not be made, --verbose says why" if unmade else ""
    if examination.found:
        found = f"{_counted(problems, 'problem')}, {_counted(warnings, 'warning')}"
        note(f"{found}; {_counted(len(examination.fine), 'other check')} fine{rest}")
    else:
        done(f"{_counted(len(examination.fine), 'check')}, all fine{rest}")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def shown_json(examination: Examination) -> dict[str, object]:
    """The same for scripts."""
    return {
        "level": examination.level.name.lower(),
        "findings": [each._asdict() | {"level": each.level.name.lower()} for each in examination.sorted()],
        "fine": [{"check": check, "subject": subject} for check, subject in examination.fine],
        "not_checked": [each._asdict() for each in examination.unmade],
    }
