"""Send the records that `ottla produce` reads, and report which were acknowledged.

Rules:
- The first line that cannot be sent, or that the brokers refuse, ends the command. The lines read before it are
  delivered first, so that each is known to be acknowledged or not.
- The error says where to continue: it names the line, how many records were acknowledged, and the lines of those that
  were not.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from ottla.cli.records.text import Outgoing
    from ottla.client.options import ClientOptions
    from ottla.client.producer.accumulator import RecordMetadata
    from ottla.client.producer.producer import Producer, ProducerOptions

Numbered = tuple[int, bytes]  # the number of a line, and the line

# How many acknowledgements may be outstanding while reading goes on; the producer's own buffer bounds their bytes.
_WAITING_MAX = 10_000
_RANGES_SHOWN = 5


async def send_all(
    client: ClientOptions,
    options: ProducerOptions,
    topic: str,
    parse: Callable[[bytes], Outgoing],
    lines: AsyncIterator[Numbered],
    *,
    verbose: bool,
    one_by_one: bool = False,
    noun: str = "line",
) -> None:
    """Send all lines; raises CommandError as soon as one of them could not be written."""
    from ottla.cli.terminal.output import done
    from ottla.client.producer.producer import Producer

    started_s = asyncio.get_running_loop().time()
    producer = Producer(client, options)
    sending = _Sending(producer, topic, verbose, noun)
    async with producer:
        async for number, line in lines:
            try:
                await sending.add(number, parse(line))
            except CommandError as error:
                await sending.settle()
                raise sending.stopped_at(number, error) from None
            if one_by_one or len(sending.waiting) >= _WAITING_MAX:
                await sending.settle()
        await sending.settle()
    seconds = asyncio.get_running_loop().time() - started_s
    done(f"{_count(sending.acknowledged)} to {topic} in {seconds:.2f} s")


class _Sending:
    """The records under way, and the number of acknowledged ones."""

    def __init__(self, producer: Producer, topic: str, verbose: bool, noun: str) -> None:
        self.waiting: list[tuple[int, asyncio.Future[RecordMetadata]]] = []
        self.acknowledged = 0
        self._producer = producer
        self._topic = topic
        self._verbose = verbose
        self._noun = noun

    async def add(self, number: int, record: Outgoing) -> None:
        """Hand a record to the producer. Raises CommandError if this record cannot be sent, while others can."""
        from ottla.client.errors import ClientError
        from ottla.model.errors import ApiError, ErrorCode
        from ottla.operations.failures import hint_for

        key, value, headers, partition, timestamp = record
        try:
            future = await self._producer.enqueue(
                self._topic, value, key, headers=headers, partition=partition, timestamp=timestamp
            )
        except (ApiError, ClientError) as error:
            is_own = isinstance(error, ApiError) and error.code == ErrorCode.MESSAGE_TOO_LARGE
            if not (is_own or self.waiting or self.acknowledged):
                raise  # an error of the topic or the cluster: nothing has been sent
            hint = "that is the most that this command sends" if is_own else hint_for(error)
            raise CommandError(str(error), hint) from None
        self.waiting.append((number, future))

    async def settle(self) -> None:
        """Wait for the acknowledgements of all records so far; raises CommandError if some do not come."""
        await self._producer.flush()
        failed: list[int] = []
        last: BaseException | None = None
        for number, future in self.waiting:
            if not future.done():
                await asyncio.wait([future])
            error = future.exception()
            if error is not None:
                failed.append(number)
                last = error
                continue
            self.acknowledged += 1
            if self._verbose:
                print(json.dumps(future.result()._asdict()))
        self.waiting.clear()
        if last is not None:
            raise self._not_acknowledged(failed, last)

    def _not_acknowledged(self, failed: Sequence[int], error: BaseException) -> CommandError:
        from ottla.operations.failures import hint_for, message_of

        where = f"{self._noun if len(failed) == 1 else f'{self._noun}s'} {_ranges(failed)}"
        counts = f"{_count(len(failed))} ({where}) not acknowledged, {self.acknowledged} acknowledged"
        again = f"send {where} again and what follows {self._noun} {failed[-1]}"
        hint = hint_for(error)
        return CommandError(f"{counts}: {message_of(error)}", f"{hint}; then {again}" if hint else again)

    def stopped_at(self, number: int, error: CommandError) -> CommandError:
        """The error for a line that cannot be sent, when all records before it are acknowledged."""
        before = f"{_count(self.acknowledged)} before it acknowledged, nothing sent from there on"
        again = f"mend {self._noun} {number} and go on from there"
        return CommandError(
            f"{self._noun} {number}: {error} ({before})", f"{error.hint}; {again}" if error.hint else again
        )


def _count(number: int) -> str:
    return f"{number} {'record' if number == 1 else 'records'}"


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as `3-7, 9`; of many ranges only the first few."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [str(low) if low == high else f"{low}-{high}" for low, high in ranges[:_RANGES_SHOWN]]
    return ", ".join(shown) + (f" and more up to {ranges[-1][1]}" if len(ranges) > _RANGES_SHOWN else "")
