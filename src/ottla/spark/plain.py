"""Errors that Spark shows to users: of those whose message says it all, only the message.

Spark prints the traceback of whatever a data source raises, with every module of ours that it went through, and of each
exception that led to it. What we raise ourselves (our own classes, and a plain ValueError for what was given to us) is
a sentence that stands alone; anything else is unexpected, and keeps its traceback.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def told_plainly(method: Callable[P, T]) -> Callable[P, T]:
    """A method that Spark calls."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            if not _says_all(error):
                raise
            raise error.with_traceback(None) from None

    return call


def _says_all(error: Exception) -> bool:
    return type(error) is ValueError or type(error).__module__.partition(".")[0] == "ottla"
