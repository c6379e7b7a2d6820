"""Visits of a web site: clicks of a user, ended by a pause of 15 minutes. State and timers per user."""

from pyspark.sql import Row
from pyspark.sql import functions as F

from ottla.spark import pipeline, to, topic, with_state

PAUSE_MS = 15 * 60 * 1000
VISIT = "begin_ms long, end_ms long, pages array<string>"


def follow(key, clicks, visit):
    """Add clicks, in order of time, to the user's visit; one that comes after the pause begins another."""
    now = visit.value
    for at_ms, page in sorted((click.at_ms, click.page) for click in clicks):
        if now and at_ms - now.end_ms > PAUSE_MS:
            yield Row(user=key[0], **now.asDict())
            now = None
        if now is None:
            now = Row(begin_ms=at_ms, end_ms=at_ms, pages=[])
        now = Row(begin_ms=min(now.begin_ms, at_ms), end_ms=max(now.end_ms, at_ms), pages=[*now.pages, page])
    visit.value = now
    visit.wake_at(now.end_ms + PAUSE_MS)


def leave(key, visit):
    """Nothing has come for as long as the pause."""
    yield Row(user=key[0], **visit.value.asDict())
    visit.value = None


@pipeline.query
def visits():
    click = F.from_json(F.col("value").cast("string"), "page string, at timestamp")
    clicks = topic("clicks").select(F.col("key").cast("string").alias("user"), click.alias("c")).select("user", "c.*")
    clicks = clicks.withColumn("at_ms", F.unix_millis("at"))
    output = f"user string, {VISIT}"
    ended = with_state(clicks, "user", follow, state=VISIT, output=output, on_time=leave, time="at", grace="1 minute")
    return to(ended, "visits", key="user")
