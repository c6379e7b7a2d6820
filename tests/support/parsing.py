"""`ast.parse` in several threads at once, which CPython before 3.11.8 cannot do.

There the constructor of syntax trees counts its depth in a place that all threads share (gh-106905). It keeps the GIL,
unless a garbage collection begins within it: that runs Python code (finalizers, `gc.callbacks`), so another thread may
come in. If that one parses, too, the first fails with `SystemError: AST constructor recursion depth mismatch`. Python
3.11 parses for each traceback that it formats, to draw the carets; so a node in one thread that logs an error disturbs
a test, or pytest itself, that reads source code in another.

What this project compiles at run time (`ottla.wire.message.build`) is not concerned: `compile` to code builds no such
tree. `tests/wire/test_compiled_in_threads.py` and `tests/test_tracebacks_in_threads.py` show both.
"""

from __future__ import annotations

import ast
import gc
import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

A = ParamSpec("A")
T = TypeVar("T")

IS_CONCERNED: Final = (3, 11) <= sys.version_info < (3, 11, 8)


def one_at_a_time(parse: Callable[A, T]) -> Callable[A, T]:
    """Return a function that does the same in one thread at a time, and without a garbage collection meanwhile."""
    lock = threading.RLock()

    @wraps(parse)
    def parsed(*args: A.args, **kwargs: A.kwargs) -> T:
        with lock:
            was_enabled = gc.isenabled()
            gc.disable()
            try:
                return parse(*args, **kwargs)
            finally:
                if was_enabled:
                    gc.enable()

    return parsed


def install() -> None:
    """Have all of this process parse so."""
    if IS_CONCERNED:
        ast.parse = one_at_a_time(ast.parse)  # type: ignore[assignment]  # it has overloads
