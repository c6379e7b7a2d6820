"""Revenue per shop and minute, in event time. Late by up to 30 seconds counts; later goes to `orders.late`."""

from pyspark.sql import functions as F

from ottla.spark import late_to, pipeline, to, topic, tumbling


def parsed(records):
    order = F.from_json(F.col("value").cast("string"), "shop string, cents long, at timestamp")
    return records.withColumn("order", order).select("*", "order.*")


@pipeline.query(late=late_to("orders.late", time="at", window="1 minute", records=parsed))
def revenue():
    totals = tumbling(parsed(topic("orders")), "1 minute", "shop", time="at", grace="30 seconds").agg(
        F.count("*").alias("orders"), F.sum("cents").alias("cents")
    )
    return to(totals.select("shop", F.col("window.start").alias("minute"), "orders", "cents"), "revenue", key="shop")
