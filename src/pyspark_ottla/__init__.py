"""Found by Spark itself: a top-level package whose name begins with `pyspark_`."""
