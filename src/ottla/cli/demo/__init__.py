"""`ottla demo`: what `make run` shows. See `command.py`."""

from ottla.cli.demo.command import register

__all__ = ["register"]
