"""From one topic to another: keys, values and headers as they are, exactly once whatever is killed on the way."""

from ottla.spark import pipeline, to, topic


@pipeline.query
def copy():
    records = topic(
        "source",
        includeHeaders=True,
        maxOffsetsPerTrigger=10_000,  # at most so many in a micro-batch
        **{"kafka.isolation.level": "read_committed"},  # nothing of transactions that were aborted
    )
    return to(records.select("key", "value", "headers"), "target", includeHeaders=True)
