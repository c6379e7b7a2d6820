"""The reading side of the Spark data source."""
