"""Windows in event time. Each function returns Spark's grouped data, to be aggregated: `.agg(...)`, `.count()`,
`.sum()`.

Rules:
- `grace` is how much older than the newest time seen a record may be and still count: Spark's watermark. Spark drops
  older records; `ottla.spark.streams.late` finds those records.
- With output mode `append` a window is produced once, when `grace` has passed after its end. With `update` it is
  produced with every change.
- The column `window` of the result has `start` and `end`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.group import GroupedData


def tumbling(
    stream: "DataFrame", size: str, *by: str, time: str = "timestamp", grace: str = "0 seconds"
) -> "GroupedData":
    """Windows that follow each other without gap or overlap. Kafka Streams: `TimeWindows.ofSizeAndGrace`."""
    from pyspark.sql import functions as F

    return stream.withWatermark(time, grace).groupBy(F.window(time, size), *by)


def hopping(
    stream: "DataFrame", size: str, every: str, *by: str, time: str = "timestamp", grace: str = "0 seconds"
) -> "GroupedData":
    """Overlapping windows, of which a new one begins `every` so often. Kafka Streams: `TimeWindows...advanceBy`."""
    from pyspark.sql import functions as F

    return stream.withWatermark(time, grace).groupBy(F.window(time, size, every), *by)


def sessions(
    stream: "DataFrame", gap: str, *by: str, time: str = "timestamp", grace: str = "0 seconds"
) -> "GroupedData":
    """Windows of activity, ended by a pause of `gap`. Kafka Streams: `SessionWindows`.

    The column is called `window`, too. It works only with output mode `append`.
    """
    from pyspark.sql import functions as F

    return stream.withWatermark(time, grace).groupBy(F.session_window(time, gap).alias("window"), *by)


def grouped(stream: "DataFrame", *by: str) -> "GroupedData":
    """All records of a key, without windows. Kafka Streams: `groupBy(...).aggregate`; output mode `update`."""
    return stream.groupBy(*by)
