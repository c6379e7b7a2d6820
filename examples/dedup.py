"""A producer that is not idempotent repeats itself: only the first record of each id goes on, within an hour."""

from pyspark.sql import functions as F

from ottla.spark import dedup, pipeline, to, topic


@pipeline.query
def unique_events():
    event = F.from_json(F.col("value").cast("string"), "id string, at timestamp")
    events = topic("events").select("key", "value", event.alias("e")).select("key", "value", "e.*")
    return to(dedup(events, "id", within="1 hour", time="at").select("key", "value"), "unique_events")
