"""Clicks with what the table `users` (a compacted topic) says about who clicked; unknown users are kept, without it."""

from pyspark.sql import functions as F

from ottla.spark import join_table, pipeline, table, to, topic


def parsed(records, schema):
    """The key as `user`, and the fields of the value."""
    value = F.from_json(F.col("value").cast("string"), schema)
    return records.select(F.col("key").cast("string").alias("user"), value.alias("v")).select("user", "v.*")


@pipeline.query
def rich_clicks():
    clicks = parsed(topic("clicks"), "page string, at timestamp")
    users = parsed(table("users"), "name string, country string")
    return to(join_table(clicks, users, "user", how="left"), "rich_clicks", key="user")
