"""Orders and payments meet: within ten minutes they are `paid`, otherwise `unpaid` (known when that time is over)."""

from pyspark.sql import functions as F

from ottla.spark import join_streams, pipeline, to, topic


def events(name, schema):
    event = F.from_json(F.col("value").cast("string"), schema)
    return topic(name).select(event.alias("e")).select("e.*")


@pipeline.query
def settled():
    orders = events("orders", "id long, cents long, at timestamp")
    payments = events("payments", "id long, method string, at timestamp")
    joined = join_streams(orders, payments, "id", "10 minutes", how="left", time="at", grace="1 minute")
    state = F.when(F.col("method").isNull(), "unpaid").otherwise("paid")
    return to(joined.select("id", "cents", "method", state.alias("state")), "settled", key="cast(id as string)")
