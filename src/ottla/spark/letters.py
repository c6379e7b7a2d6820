"""Bad records of typed reads, written to the dead-letter topic as they were, with headers that say where and why.

Rules:
- The header names are those of the broker's own letters (`ottla.dlq.*`), so `ottla dlq` shows and redrives them.
- A task that is repeated writes its letters again.
"""

from types import TracebackType
from typing import TYPE_CHECKING

from ottla.client.blocking import Blocking
from ottla.client.options import ClientOptions

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX = "ottla.dlq."


class DeadLetters:
    """Writes letters; connects with the first one."""

    def __init__(self, options: ClientOptions, topic: str) -> None:
        self._options = options
        self._topic = topic
        self._client: Blocking | None = None

    def __enter__(self) -> "DeadLetters":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()

    def write(self, dead: "pa.RecordBatch") -> None:
        """Rows with `reason` and the raw columns; they are in the topic when this returns."""
        if self._client is None:
            self._client = Blocking(self._options)
        for row in dead.to_pylist():
            said = {
                "topic": row["topic"],
                "partition": str(row["partition"]),
                "offset": str(row["offset"]),
                "reason": row["reason"],
                "timestamp": str(round(row["timestamp"].timestamp() * 1000)),
            }
            headers = [(each["key"], each["value"]) for each in row["headers"] or ()]
            headers += [(PREFIX + name, text.encode()) for name, text in said.items()]
            self._client.post(self._topic, row["value"], row["key"], headers=headers)
        self._client.flush()
