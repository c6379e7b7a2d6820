"""Features for a model: what each card did in the last five minutes, and in the last hour, in one topic that a model
server reads by key. The same functions make the training set of the past: `features(transactions(stream=False), ...)`.
"""

from pyspark.sql import functions as F

from ottla.spark import hopping, pipeline, to, topic


def transactions(stream=True):
    transaction = F.from_json(F.col("value").cast("string"), "card string, cents long, country string, at timestamp")
    return topic("transactions", stream=stream).select(transaction.alias("t")).select("t.*")


def features(rows, size, every):
    """Per card: how often, how much, how far, within `size`; anew `every` so often."""
    return (
        hopping(rows, size, every, "card", time="at", grace="1 minute")
        .agg(
            F.count("*").alias("count"),
            F.avg("cents").alias("mean"),
            F.max("cents").alias("largest"),
            F.size(F.collect_set("country")).alias("countries"),
        )
        .select("card", F.col("window.end").alias("until"), "count", "mean", "largest", "countries")
    )


@pipeline.query
def last_minutes():
    return to(features(transactions(), "5 minutes", "1 minute"), "features", key="concat(card, '/5m')")


@pipeline.query
def last_hour():
    return to(features(transactions(), "1 hour", "10 minutes"), "features", key="concat(card, '/1h')")
