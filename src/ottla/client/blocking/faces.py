"""Blocking faces of asyncio objects, declared by naming methods, so that no signature is written twice.

    class BlockingTopics(Face[TopicAdmin]):
        create = waits(TopicAdmin.create)

`BlockingTopics(runner, topics).create("orders", partitions=3)` runs `topics.create(...)` in the runner's event loop and
waits for it; type checkers know its parameters and its result from `TopicAdmin.create`.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Inner = TypeVar("Inner")


class CoroutineRunner(Protocol):
    """An object that has an event loop and can run coroutines in it."""

    def run(self, call: Coroutine[object, None, T]) -> T:
        """Run a coroutine to its end and return its result."""

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over an asynchronous iterator."""


class Face(Generic[Inner]):
    """A synchronous version of an asyncio object, which is `inner`."""

    def __init__(self, runner: CoroutineRunner, inner: Inner) -> None:
        self.runner = runner
        self._inner = inner

    @property
    def inner(self) -> Inner:
        return self._inner


class _Shown(Generic[P, T]):
    """A method of the inner object, called in its event loop."""

    def __init__(self, call: Callable[..., T], method: Callable[..., object]) -> None:
        self.method = method
        self._call = call
        self.__doc__ = method.__doc__

    def __get__(self, face: object, owner: type) -> Callable[P, T]:
        made = partial(self._call, face)
        made.__doc__ = self.__doc__
        return made


def waits(
    method: Callable[Concatenate[Inner, P], Coroutine[object, None, T]],
    *,
    interrupted: Callable[[Inner], None] | None = None,
) -> _Shown[P, T]:
    """Show a coroutine method as a method that returns when it is done. `interrupted` is called in the loop if the
    caller stops waiting (Ctrl-C): the method may have completed, and its result was not returned.
    """

    def call(face: Face[Inner], *args: P.args, **kwargs: P.kwargs) -> T:
        if interrupted is None:
            return face.runner.run(method(face.inner, *args, **kwargs))
        with _telling(face, interrupted):
            return face.runner.run(method(face.inner, *args, **kwargs))

    return _Shown(call, method)


def calls(method: Callable[Concatenate[Inner, P], T]) -> _Shown[P, T]:
    """Show a method that does not wait; it runs in the event loop to which the inner object belongs."""

    def call(face: Face[Inner], *args: P.args, **kwargs: P.kwargs) -> T:
        async def inside() -> T:
            return method(face.inner, *args, **kwargs)

        return face.runner.run(inside())

    return _Shown(call, method)


def walks(
    method: Callable[Concatenate[Inner, P], AsyncIterator[T]], *, interrupted: Callable[[Inner], None] | None = None
) -> _Shown[P, Iterator[T]]:
    """Show an asynchronous generator method as a plain generator; `interrupted` as for `waits`."""

    def call(face: Face[Inner], *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        walk = face.runner.iterate(method(face.inner, *args, **kwargs))
        return walk if interrupted is None else _walk(face, walk, interrupted)

    return _Shown(call, method)


def _walk(face: Face[Inner], walk: Iterator[T], interrupted: Callable[[Inner], None]) -> Iterator[T]:
    while True:
        with _telling(face, interrupted):
            try:
                item = next(walk)
            except StopIteration:
                return
        yield item


@contextmanager
def _telling(face: Face[Inner], interrupted: Callable[[Inner], None]) -> Iterator[None]:
    async def tell() -> None:
        interrupted(face.inner)

    try:
        yield
    except Exception:
        raise
    except BaseException:
        face.runner.run(tell())
        raise
