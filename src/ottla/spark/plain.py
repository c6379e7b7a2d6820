"""Errors that Spark shows to users: those whose message is enough are shown without traceback.

Spark prints the traceback of every exception that a data source raises, with all its frames in Ottla, and the
exceptions that led to it. The message of an exception that Ottla raises itself (its own classes, and a plain ValueError
for bad arguments) can be understood alone; any other exception is unexpected and keeps its traceback.
"""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def told_plainly(method: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method that Spark calls: drop the traceback of an exception whose message is enough."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            if not _says_all(error):
                raise
            raise error.with_traceback(None) from None

    return call


@contextmanager
def told_while_pickled() -> Iterator[None]:
    """Around what is done while Spark pickles an object. Spark keeps only the last part of the name of an exception's
    class then, and prints a traceback; but an error of pickling it leaves as it is. So it is given one, whose message
    begins with the whole name, as `spark.pipelines.failure_text` reads it.
    """
    try:
        yield
    except Exception as error:
        if not _says_all(error):
            raise
        kind = type(error)
        raise pickle.PicklingError(f"{kind.__module__}.{kind.__qualname__}: {error}") from None


def _says_all(error: Exception) -> bool:
    return type(error) is ValueError or type(error).__module__.partition(".")[0] == "ottla"
