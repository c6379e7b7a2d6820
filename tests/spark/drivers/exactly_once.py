"""A driver that copies files to a topic, exactly once, and starts its query again whenever that fails.

    exactly_once.py MASTER BOOTSTRAP TOPIC DIRECTORY [OPTION=VALUE ...]

DIRECTORY holds `in` (JSON lines with a key and a value; a file is a batch) and gets `checkpoint`. A file `stop` in it
ends the program after a failure, for drivers that are to fail once. Options `spark.*` are settings of the session.
"""

import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from tests.support.spark.sessions import start_session, stop_session

from ottla.spark.source import OttlaSource

_STARTS_MAX = 40
LEAN = {"spark.jars": "", "spark.sql.extensions": ""}  # a JVM that is soon killed needs none of the jars


def main(master: str, bootstrap: str, topic: str, directory: str, *options: str) -> int:
    given = dict(option.split("=", 1) for option in options)
    session = start_session(master, **LEAN, **{name: value for name, value in given.items() if _is_setting(name)})
    session.dataSource.register(OttlaSource)
    rows = session.readStream.schema("key string, value string").option("maxFilesPerTrigger", 1).json(f"{directory}/in")
    writer = (
        rows.repartition(2, "key")
        .writeStream.format("ottla")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
    )
    for name, value in given.items():
        if not _is_setting(name):
            writer = writer.option(name, value)
    try:
        for _ in range(_STARTS_MAX):
            print("started", flush=True)
            try:
                writer.start().awaitTermination()
            except StreamingQueryException as error:
                print("failed:", str(error)[-2_000:], flush=True)
                if Path(directory, "stop").exists():
                    return 3
                continue
            print("finished", flush=True)
            return 0
        return 1
    finally:
        stop_session(session)


def _is_setting(name: str) -> bool:
    return name.startswith("spark.")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
