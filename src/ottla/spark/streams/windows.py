"""Windows in event time. Each function gives Spark's grouped data, to be aggregated: `.agg(...)`, `.count()`, `.sum()`.

Rules:
- `grace` is how much later than the newest time seen a record may come and still count: Spark's watermark. What comes
  later is dropped by Spark; `ottla.spark.streams.late` finds those records.
- With output mode `append` a window comes out once, when `grace` has passed after its end. With `update` it comes out
  with every change.
- The column `window` of the result has `start` and `end`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.group import GroupedData


def tumbling(
    stream: "DataFrame", size: str, *by: str, time: str = "timestamp", grace: str = "0 seconds"
) -> "GroupedData":
    """Windows side by side. Kafka Streams: `TimeWindows.ofSizeAndGrace`."""
    from pyspark.sql import functions as F

    return stream.withWatermark(time, grace).groupBy(F.window(time, size), *by)


def hopping(
    stream: "DataFrame", size: str, every: str, *by: str, time: str = "timestamp", grace: str = "0 seconds"
) -> "GroupedData":
    """Windows that overlap, one beginning `every` so often. Kafka Streams: `TimeWindows...advanceBy`."""
    from pyspark.sql import functions as F

    return stream.withWatermark(time, grace).groupBy(F.window(time, size, every), *by)


def sessions(
    stream: "DataFrame", gap: str, *by: str, time: str = "timestamp", grace: str = "0 seconds"
) -> "GroupedData":
    """Windows of activity, ended by a pause of `gap`. Kafka Streams: `SessionWindows`.

    The column is called `window` here too. Only with output mode `append`.
    """
    from pyspark.sql import functions as F

    return stream.withWatermark(time, grace).groupBy(F.session_window(time, gap).alias("window"), *by)


def grouped(stream: "DataFrame", *by: str) -> "GroupedData":
    """All records of a key, for ever. Kafka Streams: `groupBy(...).aggregate`; output mode `update`."""
    return stream.groupBy(*by)
