"""Change data capture into Delta: the topic `customers.changes`, as Debezium writes it, becomes a table of customers as
they are now.

Spark needs Delta for it: `ottla pipeline run examples/upserts.py` with
`-c spark.jars.packages=io.delta:delta-spark_2.13:4.4.0`
`-c spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension`
`-c spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog`
"""

import os

from pyspark.sql import functions as F

from ottla.spark import pipeline, to_delta, topic

TABLE = os.environ.get("CUSTOMERS_TABLE", "./lake/customers")
ROW = "struct<id: long, name: string, city: string>"
CHANGE = f"op string, before {ROW}, after {ROW}, source struct<lsn: long>"


@pipeline.query
def customers():
    records = topic("customers.changes").where("value is not null")  # Debezium lets a null follow a deletion
    changes = records.select(F.from_json(F.col("value").cast("string"), CHANGE).alias("c"))
    rows = changes.selectExpr("coalesce(c.after, c.before) as row", "c.op", "c.source.lsn").select("row.*", "op", "lsn")
    return to_delta(rows, TABLE, merge=["id"], order="lsn", deleted="s.op = 'd'")
