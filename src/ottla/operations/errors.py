"""Errors of an operation that users can do something about, each with a hint."""


class CommandError(Exception):
    """A command cannot do what was asked; `hint` says what the user can do."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class WrongUsage(CommandError):
    """The arguments of a command are wrong, independently of the state of the cluster."""

    exit_code = 2
