"""Making the source known to a Spark session.

Spark finds it by itself where `ottla` is installed for the Python of the driver (or of the Connect server): it looks
for packages like `pyspark_ottla`. Registering it is for sessions whose Spark has looked before it was installed.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(session: "SparkSession | None" = None) -> bool:
    """Make `format("ottla")` known to a session, the active one unless told; False if there is none."""
    if session is None:
        if "pyspark.sql" not in sys.modules:
            return False  # nobody can have a session
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        if session is None:
            return False
    from ottla.spark.source import OttlaSource

    session.dataSource.register(OttlaSource)
    return True
