"""The demo's pipeline, as a user would write it: orders that were paid, with their users' countries, and revenue.

Two queries: `sales` joins orders with payments and users and writes them, exactly once, to the topic `sales`;
`revenue` reads that topic and writes ten-minute totals per country, exactly once, to Parquet.
Run by `ottla pipeline run`; it is an ordinary pipeline file.
"""

import os
from typing import Any

from pyspark.sql import functions as F

from ottla.spark import join_table, pipeline, table, to, to_parquet, topic, tumbling

REVENUE_DIRECTORY = "OTTLA_DEMO_REVENUE"
# Use the registered schema of the subject, not one derived from the columns.
AS_REGISTERED: dict[str, Any] = {"value.version": "latest"}


@pipeline.stream
def users() -> Any:
    """The table of users: the latest record of each key."""
    return table("users", value="avro").select("value.user_id", "value.country")


@pipeline.stream
def orders() -> Any:
    return topic("orders", value="avro").select("value.*").withWatermark("ordered_at", "10 minutes")


@pipeline.stream
def payments() -> Any:
    paid = topic("payments", value="avro").select("value.*").withWatermark("paid_at", "10 minutes")
    return paid.withColumnRenamed("order_id", "paid_order_id")


@pipeline.query(trigger="1 second")
def sales(orders: Any, payments: Any, users: Any) -> Any:
    """Join two streams in time; then join the result with a table."""
    in_time = F.expr("""
        order_id = paid_order_id AND paid_at >= ordered_at AND paid_at < ordered_at + INTERVAL 5 MINUTES
    """)
    sold = join_table(orders.join(payments, in_time), users, "user_id")
    columns = sold.select("order_id", "user_id", "country", "cents", "method", "ordered_at")
    return to(columns, "sales", key="cast(order_id as string)", format="avro", **AS_REGISTERED)


@pipeline.query(trigger="2 seconds")
def revenue() -> Any:
    """Tumbling windows; a window is written once, when it cannot change any more."""
    sold = topic("sales", value="avro").select("value.*")
    totals = tumbling(sold, "10 minutes", "country", time="ordered_at", grace="20 minutes").agg(
        F.count("*").alias("sales"), F.sum("cents").alias("cents")
    )
    rows = totals.select("window.start", "country", "sales", "cents")
    return to_parquet(rows, os.environ[REVENUE_DIRECTORY])
