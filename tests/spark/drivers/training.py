"""What the archive of Spark's classes is made from (tests/support/java/archiving.py): a session that does something of
everything that tests do, by itself and as a Connect server.

    training.py BOOTSTRAP DIRECTORY PORT

The archive is written when its JVM ends.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.spark.sessions import start_session, stop_session

from ottla.client.blocking.blocking import Blocking

_ARCHIVING_S = 120


def stream(session: Any, directory: str) -> None:
    """Windows and keyed state over files, and a function for each batch."""
    written = session.range(40).selectExpr("id % 7 user", "id amount", "timestamp_seconds(id) at")
    written.selectExpr("to_json(struct(*)) value").write.text(f"{directory}/in")
    rows = session.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(f"{directory}/in")
    parsed = rows.selectExpr("from_json(value, 'user long, amount long, at timestamp') o").select("o.*")
    unique = parsed.withWatermark("at", "5 seconds").dropDuplicates(["user", "amount", "at"])
    windows = unique.selectExpr("*", "window(at, '10 seconds') w").groupBy("w", "user").count()
    query = (
        windows.writeStream.foreachBatch(lambda batch, number: batch.collect() and None)
        .option("checkpointLocation", f"{directory}/windows")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    session.createDataFrame([(1, "a")], "n long, s string").toPandas()


def main(bootstrap: str, directory: str, port: str) -> None:
    session = start_session(
        **{
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.port": port,
            "spark.connect.grpc.binding.address": "127.0.0.1",
        }
    )
    stream(session, directory)
    with Blocking(bootstrap) as client:
        for name in ("training", "training-copy"):
            client.admin.topics.create(name, partitions=2)
    job = Path(__file__).with_name("round_trip.py")
    arguments = [f"sc://127.0.0.1:{port}", bootstrap, "training", f"{directory}/copy"]
    subprocess.run([sys.executable, str(job), *arguments], check=True)
    stop_session(session, _ARCHIVING_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
