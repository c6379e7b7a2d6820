"""Commands over several items: each item is tried, and the outcome of each is printed.

Rule: one line per item, whether it succeeded or failed; the exit code is 1 if one failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ottla.cli.terminal.output import done
from ottla.cli.terminal.plain import print_error
from ottla.operations.failures import hint_for

if TYPE_CHECKING:
    from ottla.client.outcomes import Outcomes


Item = TypeVar("Item")
_HINT = "the others are done, if there are any; the same command can be repeated for this one"


def tell(outcomes: Outcomes[Any, Any], said: Callable[[Any], str], noun: str = "") -> None:
    """Print a line for each item: `said(item)` if it succeeded, the error if it failed."""
    for part in outcomes.found:
        done(said(part))
    end_with(outcomes, noun)


def end_with(
    outcomes: Outcomes[Item, Any], noun: str = "", consequence: str = "", said: Callable[[Item], str] = str
) -> None:
    """Print the errors, after everything else was printed; end the command if there are any."""
    for part, error in outcomes.failed.items():
        print_error(f"{noun} {said(part)}: {error}{consequence}".strip(), hint_for(error) or _HINT)
    if outcomes.failed:
        raise typer.Exit(1)
