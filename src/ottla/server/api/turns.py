"""Requests that keep their turn: they cannot be carried out at once, but have to be before later requests are handled.

The connection is held meanwhile (`Context.hold`), so the request stays in the receive buffer: nothing is copied, its
memory counts as request memory, and no later request overtakes it. A request that waits for its turn (`keep_turn`) is
carried out even if its connection is closed by then; Kafka does the same, and with acks=0 clients rely on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TypeVar, cast

from ottla.server.api.context import Context
from ottla.server.loop.later import NO_ANSWER, Answer, Disconnect, Large, Later

log = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")


def hold_while(context: Context, answer: Coroutine[object, None, T]) -> asyncio.Task[T]:
    """Return `answer` as a task, and hold the connection until it is done, or is cancelled because the connection was
    closed. For requests that were begun and wait for another node: Kafka's brokers take the next one afterwards, too.
    """
    task = context.runtime.loop.create_task(answer)
    context.hold_until(task)
    return task


def keep_turn(context: Context, awaited: Later[T], carry_out: Callable[[T], Answer[U]]) -> Later[U | Large[U]]:
    """Return the answer of `carry_out`, which is called with the value of `awaited` once that is set."""
    later: Later[U | Large[U]] = Later()
    context.hold()
    context.turns_kept += 1

    def go_on(value: T) -> None:
        try:
            _pass_on(carry_out(value), later)
        except Disconnect as reason:
            log.info("closing %s: %s", context.connection.remote_address, reason)
            later.fail()
        except Exception:
            log.exception("a request of %s that kept its turn failed", context.connection.remote_address)
            later.fail()
        finally:
            end_turn()

    def give_up() -> None:
        later.fail()
        end_turn()

    def end_turn() -> None:
        context.turns_kept -= 1
        context.let_go()

    awaited.then(go_on, give_up)
    return later


def _pass_on(answer: Answer[U], later: Later[U | Large[U]]) -> None:
    if answer is None:
        later.set(NO_ANSWER)
    elif isinstance(answer, Later):
        later.on_abandon = answer.abandon
        answer.then(lambda response: None if later.done else later.set(response), later.fail)
    else:
        later.set(cast("U | Large[U]", answer))  # nothing that keeps its turn is awaited
