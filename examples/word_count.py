"""Counts words of the topic `lines`, for ever; the counts are a changelog in the compacted topic `word_counts`."""

from pyspark.sql import functions as F

from ottla.spark import pipeline, to_changelog, topic


@pipeline.stream
def words():
    lines = topic("lines").select(F.lower(F.col("value").cast("string")).alias("line"))
    return lines.select(F.explode(F.split("line", r"\W+")).alias("word")).where("word <> ''")


@pipeline.query
def word_counts(words):
    counts = words.groupBy("word").count()
    return to_changelog(counts, "word_counts", key="word", value="cast(count as string)")
