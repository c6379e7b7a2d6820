"""Print errors on a terminal: one red line, and a hint if there is one."""

from ottla.cli.terminal.plain import print_error
from ottla.operations.errors import CommandError, WrongUsage
from ottla.operations.failures import hint_for, message_of, not_text


def report(error: BaseException, usual_hint: str) -> int:
    """Print the error to stderr, with a hint of its own or the usual one, and return the exit code."""
    print_error(message_of(error), hint_for(error) or usual_hint)
    if not_text(error) is not None:
        return WrongUsage.exit_code
    return error.exit_code if isinstance(error, CommandError) else 1
