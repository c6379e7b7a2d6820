"""`--from`: where the streams of a pipeline start to read, instead of at the offsets in their checkpoints.

It is `earliest`, `latest`, an offset (for every partition, moved into the partition's range), a time
(2026-01-31T12:00), or how long ago (2h).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ottla.client.blocking.blocking import Blocking
from ottla.model.durations import parse_duration_ms


@dataclass(frozen=True, slots=True)
class From:
    """A starting place for all topics. Implements `service_addresses.Replay`."""

    client: Blocking
    name: str | None = None
    offset: int | None = None
    time_ms: int | None = None

    def options(self, topics: Sequence[str]) -> dict[str, str]:
        if self.name is not None:
            return {"startingOffsets": self.name}
        if self.time_ms is not None:
            # Partitions without a record at or after that time begin at their end.
            return {"startingTimestamp": str(self.time_ms), "startingOffsetsByTimestampStrategy": "latest"}
        assert self.offset is not None
        places = {
            topic: {
                str(index): min(max(self.offset, start), end)
                for index, (start, end) in self.client.admin.topics.bounds(topic).items()
            }
            for topic in topics
        }
        return {"startingOffsets": json.dumps(places)}


def parse_from(text: str, client: Blocking, now_ms: int) -> From:
    """Parse the value of `--from`. Raises ValueError if it has none of the forms."""
    if text in ("earliest", "latest"):
        return From(client, name=text)
    if text.isdecimal():
        return From(client, offset=int(text))
    try:
        return From(client, time_ms=round(datetime.fromisoformat(text).timestamp() * 1000))
    except ValueError:
        pass
    try:
        return From(client, time_ms=now_ms - parse_duration_ms(text))
    except ValueError:
        raise ValueError(
            f"{text!r} is neither earliest, latest, an offset, a time (2026-01-31T12:00) nor how long ago (2h)"
        ) from None
