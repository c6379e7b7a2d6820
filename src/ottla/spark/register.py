"""Register the data source with a Spark session.

Spark finds the source by itself if `ottla` is installed for the Python of the driver (or of the Connect server): Spark
looks for packages with names like `pyspark_ottla`. Registering is needed for sessions whose Spark has looked before
`ottla` was installed. A session of the user's own may then start several streams at the same time, too (see
`spark.runtime.shared_environment`).
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(session: "SparkSession | None" = None) -> bool:
    """Register `format("ottla")` with a session, by default the active one; False if there is none."""
    if session is None:
        if "pyspark.sql" not in sys.modules:
            return False  # there can be no session
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        if session is None:
            return False
    from ottla.spark.runtime.shared_environment import settle_environment
    from ottla.spark.source import OttlaSource

    session.dataSource.register(OttlaSource)
    settle_environment(session)
    return True
