"""Limit how long calls wait for a Connect server that does not answer: Spark's own client retries each call for ten
minutes.

A server that was restarted does not know the session any more, so waiting helps only against short network failures.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# With waits of 0.05, 0.2, 0.8, 3.2 and then 10 seconds: about forty seconds in all.
RETRIES = 8
_WAIT_MAX_MS = 10_000


def limit_retries(session: "SparkSession", retries: int = RETRIES) -> None:
    """Limit the retries of every call of this session from now on. Does nothing if the driver is in this process."""
    if hasattr(session, "_jsparkSession"):
        return
    from pyspark.sql.connect.client.retries import DefaultPolicy

    client: Any = session.client
    client.set_retry_policies([DefaultPolicy(max_retries=retries, max_backoff=_WAIT_MAX_MS)])
