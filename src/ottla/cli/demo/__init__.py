"""`ottla demo`, which `make run` runs. See `command.py`."""

from ottla.cli.demo.command import register

__all__ = ["register"]
