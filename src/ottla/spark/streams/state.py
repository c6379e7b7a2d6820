"""Keyed state: a function that gets a key's new rows and the state of that key. Kafka Streams: a processor with a
key-value store; Spark: `transformWithState`, which has more (lists, maps, initial state) and can be used too.

    def count(key, rows, kept):
        total = (kept.value.total if kept.value else 0) + sum(1 for _ in rows)
        kept.value = Row(total=total)
        yield Row(user=key.user, total=total)

    with_state(clicks, "user", count, state="total long", output="user string, total long")
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
        ValueState,
    )


class Kept:
    """The state of one key, during one call."""

    def __init__(self, names: list[str], state: "ValueState", handle: "StatefulProcessorHandle", now_ms: int) -> None:
        self._names = names
        self._state = state
        self._handle = handle
        # The watermark with event time, the clock with processing time; -1 without either.
        self.now_ms = now_ms

    @property
    def value(self) -> "Row | None":
        """The state of the key; None at first, and after it was set to None."""
        from pyspark.sql import Row

        if not self._state.exists():
            return None
        return Row(*self._names)(*(self._state.get() or ()))

    @value.setter
    def value(self, row: "Row | tuple[Any, ...] | None") -> None:
        if row is None:
            self._state.clear()
        else:
            self._state.update(tuple(row))

    def wake_at(self, time_ms: int) -> None:
        """Call `on_time` for this key at this time; replaces a time that was set before."""
        self.sleep()
        self._handle.registerTimer(time_ms)

    def sleep(self) -> None:
        """Cancel the call of `on_time` for this key."""
        for each in list(self._handle.listTimers()):
            self._handle.deleteTimer(each)


RowsFunction = Callable[[Any, Iterator["Row"], Kept], "Iterable[Row]"]
TimeFunction = Callable[[Any, Kept], "Iterable[Row]"]


def with_state(
    stream: "DataFrame",
    by: str | list[str],
    function: RowsFunction,
    *,
    state: str,
    output: str,
    on_time: TimeFunction | None = None,
    time: str | None = None,
    grace: str = "0 seconds",
    mode: str = "append",
    ttl_ms: int | None = None,
) -> "DataFrame":
    """Rows that `function(key, rows, kept)` yields for each key of each micro-batch.

    `state` and `output` are schemas as Spark writes them ("total long, last timestamp"). With `time` (a column) timers
    use event time, `grace` behind the newest; without it the clock. `on_time(key, kept)` is called when a timer of
    `kept.wake_at` is due. `ttl_ms`: the state of a key is removed if it was not written for so long (by the clock).
    """
    keys = [by] if isinstance(by, str) else by
    if ttl_ms is not None and time is not None:
        raise ValueError("Spark forgets state by the clock only: ttl_ms goes without time")
    needs_clock = on_time is not None or ttl_ms is not None
    time_mode = "eventTime" if time is not None else "processingTime" if needs_clock else "none"
    timed = stream if time is None else stream.withWatermark(time, grace)
    kept = StructType.fromDDL(state)  # parsed here, because that needs a session, which workers do not have
    assert isinstance(kept, StructType)
    processor = _Keyed(function, on_time, kept, time_mode, ttl_ms)
    return timed.groupBy(*keys).transformWithState(processor, output, mode, time_mode)


class _Keyed(StatefulProcessor):
    """A processor of Spark that calls the two functions."""

    def __init__(
        self,
        function: RowsFunction,
        on_time: TimeFunction | None,
        state: StructType,
        time_mode: str,
        ttl_ms: int | None,
    ) -> None:
        self._function = function
        self._on_time = on_time
        self._schema = state
        self._time_mode = time_mode
        self._ttl_ms = ttl_ms

    def init(self, handle: "StatefulProcessorHandle") -> None:
        self._handle = handle
        self._state = handle.getValueState("kept", self._schema, self._ttl_ms)
        self._names = self._schema.names

    def handleInputRows(self, key: Any, rows: "Iterator[Row]", timerValues: "TimerValues") -> "Iterator[Row]":
        yield from self._function(key, rows, self._kept(timerValues))

    def handleExpiredTimer(
        self, key: Any, timerValues: "TimerValues", expiredTimerInfo: "ExpiredTimerInfo"
    ) -> "Iterator[Row]":
        if self._on_time is not None:
            yield from self._on_time(key, self._kept(timerValues))

    def close(self) -> None:
        pass

    def _kept(self, timers: "TimerValues") -> Kept:
        if self._time_mode == "none":
            now_ms = -1
        elif self._time_mode == "eventTime":
            now_ms = timers.getCurrentWatermarkInMs()
        else:
            now_ms = timers.getCurrentProcessingTimeInMs()
        return Kept(self._names, self._state, self._handle, now_ms)
